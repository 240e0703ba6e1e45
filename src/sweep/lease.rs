//! One sweep of a store at a time.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::report::SweepError;
use crate::backend::{Backend, BackendError, ErrorKind, Key, Put};

/// How many sweeps may have died in a row.
const MOST: usize = 1_000;
/// How often one is asked for that others give back at the same moment.
const ATTEMPTS: usize = 16;

/// The right to sweep a store: an object in it that says who sweeps since when.
///
/// A lease whose sweep has died is never replaced, for two may see it dead at the same moment: the next number is taken, which only
/// one can get, and the dead ones are removed at the end, in the order in which they are asked for.
#[derive(Debug)]
pub(super) struct Lease {
    /// The last is ours.
    keys: Vec<Key>,
}

#[derive(Serialize, Deserialize)]
struct Holder {
    by: String,
    /// In seconds since 1970.
    since: u64,
}

impl Lease {
    /// Takes it, `now`, if nobody who has it for less than `grace` does.
    pub(super) async fn take(store: &dyn Backend, now: SystemTime, grace: Duration) -> Result<Self, SweepError> {
        let by = format!("process {}, {:08x}", std::process::id(), RandomState::new().build_hasher().finish() as u32);
        let since = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let holder = Holder { by, since };
        let content = Bytes::from(serde_json::to_vec(&holder).map_err(|error| broken("no JSON").with_source(error))?);
        let mut keys = Vec::new();
        while keys.len() < MOST {
            let key = key(keys.len() + 1)?;
            let Some(held) = holder_or_ours(store, &key, &content).await? else {
                keys.push(key);
                return Ok(Self { keys });
            };
            let since = UNIX_EPOCH + Duration::from_secs(held.since);
            let running_for = now.duration_since(since).unwrap_or_default();
            if running_for < grace {
                return Err(SweepError::Held { lease: store.locate(&key), by: held.by, since, running_for, grace });
            }
            keys.push(key);
        }
        Err(broken("too many sweeps have died in it: remove what is in `swept/` and begins with `lease-`").into())
    }

    /// Gives it back.
    pub(super) async fn give_back(self, store: &dyn Backend) {
        for key in self.keys {
            if let Err(error) = store.remove(&key).await {
                // The next sweep has to wait until it counts as dead.
                tracing::warn!(lease = %store.locate(&key), %error, "a sweep is over and could not say so");
                return;
            }
        }
    }
}

/// Who holds the lease; `None` if we do now.
async fn holder_or_ours(store: &dyn Backend, key: &Key, ours: &Bytes) -> Result<Option<Holder>, SweepError> {
    for _ in 0..ATTEMPTS {
        if store.put(key, ours.clone()).await? != Put::Taken {
            return Ok(None);
        }
        match store.read(key, 0..4096).await {
            Ok(page) => {
                // What nobody can read holds it for ever: it is nothing that a sweep has left.
                let unknown = Holder { by: "somebody unknown".to_owned(), since: u64::from(u32::MAX) };
                return Ok(Some(serde_json::from_slice(&page.bytes).unwrap_or(unknown)));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(broken("its lease can be neither taken nor read").into())
}

/// No key of stored content: the segment before the last is no phase.
fn key(number: usize) -> Result<Key, SweepError> {
    Key::new(format!("swept/lease-{number}")).map_err(|error| broken("no key").with_source(error).into())
}

fn broken(why: &str) -> BackendError {
    BackendError::new(ErrorKind::Other, format!("the store can't be swept: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Memory;

    const GRACE: Duration = Duration::from_secs(86_400);

    async fn take(store: &Memory, hours: u64) -> Result<Lease, SweepError> {
        Lease::take(store, UNIX_EPOCH + Duration::from_secs(hours * 3_600), GRACE).await
    }

    #[tokio::test]
    async fn one_has_it_at_a_time() {
        let store = Memory::new();
        let first = take(&store, 100).await.unwrap();
        let error = take(&store, 101).await.unwrap_err().to_string();
        assert!(error.contains("for 3600 s") && error.contains("memory:/swept/lease-1"), "{error}");
        assert!(take(&store, 99).await.is_err(), "clocks differ");
        first.give_back(&store).await;
        take(&store, 101).await.unwrap().give_back(&store).await;
        assert!(store.is_empty());
    }

    #[tokio::test]
    async fn a_dead_one_is_taken_over_by_one() {
        let store = Memory::new();
        take(&store, 100).await.unwrap();
        assert!(take(&store, 123).await.is_err());
        let second = take(&store, 124).await.unwrap();
        assert!(take(&store, 125).await.is_err(), "the dead one is no way in");
        // It dies too, while the third gives both back.
        let third = take(&store, 148).await.unwrap();
        assert_eq!((second.keys.len(), third.keys.len()), (2, 3));
        third.give_back(&store).await;
        assert!(store.is_empty());
    }

    #[tokio::test]
    async fn what_nobody_can_read_is_left_alone() {
        let store = Memory::new();
        store.put(&key(1).unwrap(), "?".into()).await.unwrap();
        assert!(take(&store, 1_000_000).await.unwrap_err().to_string().contains("somebody unknown"));
    }
}
