//! Allows one sweep of a store at a time.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::report::{SweepError, SweepFailure};

/// Maximum number of sweeps that may have died in a row.
const MOST: usize = 1_000;
/// Maximum length of a lease, in bytes.
const LONGEST: u64 = 4096;
/// Number of attempts to take a lease that others give back at the same moment.
const ATTEMPTS: usize = 16;

/// The right to sweep a store: an object in the store that says which sweep runs, and since when.
///
/// The lease of a dead sweep is never replaced, because two sweeps may find it dead at the same
/// moment. Instead the next number is taken, which only one of them can get. The dead leases are
/// removed at the end, in ascending order.
#[derive(Debug)]
pub(super) struct Lease {
    /// Our lease and the dead ones with their content, by number.
    held: Vec<(Key, Bytes)>,
}

#[derive(Serialize, Deserialize)]
struct Holder {
    by: String,
    /// In seconds since 1970.
    since: u64,
    /// Its grace in seconds. It does not count as dead for this long.
    #[serde(default)]
    grace: u64,
}

impl Holder {
    /// Returns the start, and the time since then: zero while the start is in the future or out of
    /// range.
    fn times(&self, now: SystemTime) -> (SystemTime, Duration) {
        let since = UNIX_EPOCH
            .checked_add(Duration::from_secs(self.since))
            .unwrap_or(now);
        (since, now.duration_since(since).unwrap_or_default())
    }
}

impl Lease {
    /// Returns a key that neither a lease nor anything else has.
    pub(super) fn of_nobody() -> Result<Key, SweepError> {
        key(0)
    }

    /// Takes the lease at `now`, unless a holder began less than `grace`, or less than its own
    /// grace, ago.
    pub(super) async fn take(
        store: &dyn Backend,
        now: SystemTime,
        grace: Duration,
    ) -> Result<Self, SweepError> {
        let by = format!(
            "process {}, {:08x}",
            std::process::id(),
            RandomState::new().build_hasher().finish() as u32
        );
        let since = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let holder = Holder {
            by,
            since,
            grace: grace.as_secs(),
        };
        let ours =
            Bytes::from(serde_json::to_vec(&holder).map_err(|error| {
                broken("its lease can't be written as JSON").with_source(error)
            })?);
        let (mut lease, mut is_taken) = (Self { held: Vec::new() }, false);
        for number in 1..=MOST {
            let key = key(number)?;
            let there = if is_taken {
                read(store, &key).await
            } else {
                put_or_read(store, &key, &ours).await
            };
            let there = match there {
                Ok(there) => there,
                Err(error) => {
                    // The write may have succeeded all the same, and we will not hold this lease.
                    remove_if(store, &key, &ours).await;
                    lease.give_back_ours(store, &ours).await;
                    return Err(error.into());
                }
            };
            match there {
                // Ours is the last: no sweep has taken a later number.
                LeaseContent::Empty => return Ok(lease),
                LeaseContent::Ours => {
                    is_taken = true;
                    lease.held.push((key, ours.clone()));
                }
                LeaseContent::Another(bytes) => {
                    // An unreadable lease never expires: no sweep has written it.
                    let unknown = || Holder {
                        by: "an unknown process".to_owned(),
                        since: u64::MAX,
                        grace: 0,
                    };
                    let held: Holder = serde_json::from_slice(&bytes).unwrap_or_else(|_| unknown());
                    let (since, running_for) = held.times(now);
                    let grace = grace.max(Duration::from_secs(held.grace));
                    if running_for < grace {
                        lease.give_back_ours(store, &ours).await;
                        return Err(SweepError::Held {
                            lease: store.locate(&key),
                            by: held.by,
                            since,
                            running_for,
                            grace,
                        });
                    }
                    lease.held.push((key, bytes));
                }
            }
        }
        lease.give_back_ours(store, &ours).await;
        Err(broken(
            "too many sweeps have died in it: remove the entries in `swept/` whose names begin with `lease-`",
        )
        .into())
    }

    /// Gives back our lease and removes the dead ones.
    pub(super) async fn give_back(self, store: &dyn Backend) {
        for (key, content) in &self.held {
            if !remove_if(store, key, content).await {
                return;
            }
        }
    }

    /// Gives back our lease only, because another sweep is alive.
    async fn give_back_ours(&self, store: &dyn Backend, ours: &Bytes) {
        for (key, _) in self.held.iter().filter(|(_, content)| content == ours) {
            remove_if(store, key, ours).await;
        }
    }
}

/// Content of a lease's key.
enum LeaseContent {
    Empty,
    Ours,
    Another(Bytes),
}

async fn put_or_read(
    store: &dyn Backend,
    key: &Key,
    ours: &Bytes,
) -> Result<LeaseContent, BackendError> {
    for _ in 0..ATTEMPTS {
        if store.put(key, ours.clone()).await? != PutOutcome::Taken {
            return Ok(LeaseContent::Ours);
        }
        match read(store, key).await? {
            LeaseContent::Empty => {}
            there => return Ok(there),
        }
    }
    Err(broken(
        "its lease can be neither taken nor read: try again later",
    ))
}

async fn read(store: &dyn Backend, key: &Key) -> Result<LeaseContent, BackendError> {
    match store.read(key, 0..LONGEST).await {
        Ok(page) => Ok(LeaseContent::Another(page.bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(LeaseContent::Empty),
        Err(error) => Err(error),
    }
}

/// Removes `key` if it holds `content`. Returns true if it does not hold `content` any more.
async fn remove_if(store: &dyn Backend, key: &Key, content: &Bytes) -> bool {
    let removed = match read(store, key).await {
        Ok(LeaseContent::Another(there)) if there == *content => store.remove(key).await.map(drop),
        // Another sweep's lease, or none: ours was gone already.
        Ok(_) => return true,
        Err(error) => Err(error),
    };
    if let Err(error) = &removed {
        // The next sweep has to wait until this lease counts as dead.
        tracing::warn!(lease = %store.locate(key), %error, "a sweep has ended but could not give back its lease");
    }
    removed.is_ok()
}

/// Builds the report's entry for a `store` whose lease can't be written.
pub(super) fn not_written(
    store: &dyn Backend,
    error: &BackendError,
) -> Result<SweepFailure, SweepError> {
    let error = format!(
        "the lease of this sweep can't be written, so nothing was moved or brought back; only content whose grace had passed was \
         removed: {error}"
    );
    Ok(SweepFailure {
        location: store.locate(&key(1)?),
        error,
    })
}

/// Not a key of stored content: its second last segment is not a phase.
fn key(number: usize) -> Result<Key, SweepError> {
    Key::new(format!("swept/lease-{number}"))
        .map_err(|error| broken("its lease can't be named").with_source(error).into())
}

fn broken(why: &str) -> BackendError {
    BackendError::new(ErrorKind::Other, format!("the store can't be swept: {why}"))
}

#[cfg(test)]
mod tests {
    use crate::backend::Memory;

    use super::*;

    const GRACE: Duration = Duration::from_secs(86_400);

    async fn take(store: &Memory, hours: u64) -> Result<Lease, SweepError> {
        Lease::take(
            store,
            UNIX_EPOCH + Duration::from_secs(hours * 3_600),
            GRACE,
        )
        .await
    }

    #[tokio::test]
    async fn a_lease_has_one_holder() {
        let store = Memory::new();
        let first = take(&store, 100).await.unwrap();
        let error = take(&store, 101).await.unwrap_err().to_string();
        assert!(
            error.contains("for 3600 s") && error.contains("memory:/swept/lease-1"),
            "{error}"
        );
        assert!(take(&store, 99).await.is_err(), "clocks differ");
        first.give_back(&store).await;
        take(&store, 101).await.unwrap().give_back(&store).await;
        assert!(store.is_empty());
    }

    #[tokio::test]
    async fn a_dead_lease_is_taken_over_by_one_sweep() {
        let store = Memory::new();
        take(&store, 100).await.unwrap();
        assert!(take(&store, 123).await.is_err());
        let second = take(&store, 124).await.unwrap();
        assert!(
            take(&store, 125).await.is_err(),
            "the dead one is no way in"
        );
        // The second dies too, while the third gives both back.
        let third = take(&store, 148).await.unwrap();
        assert_eq!((second.held.len(), third.held.len()), (2, 3));
        third.give_back(&store).await;
        assert!(store.is_empty());
    }

    #[tokio::test]
    async fn a_lease_lives_as_long_as_its_grace() {
        let store = Memory::new();
        let begun = UNIX_EPOCH + GRACE * 100;
        let slow = Lease::take(&store, begun, GRACE * 2).await.unwrap();
        let hurried = Lease::take(&store, begun + GRACE, GRACE / 24).await;
        assert!(matches!(hurried, Err(SweepError::Held { grace, .. }) if grace == GRACE * 2));
        slow.give_back(&store).await;
        assert!(store.is_empty());
    }

    #[tokio::test]
    async fn a_late_sweep_gives_back_only_its_own_lease() {
        let store = Memory::new();
        let late = take(&store, 100).await.unwrap();
        let second = take(&store, 124).await.unwrap();
        late.give_back(&store).await;
        assert!(
            store.read(&key(1).unwrap(), 0..1).await.is_err(),
            "it is free"
        );
        assert!(take(&store, 125).await.is_err(), "the second is under way");
        assert_eq!(store.len(), 1, "and nothing is left of who asked");
        // The lease that it took for dead was given back, and now belongs to another sweep.
        let content = Bytes::from(r#"{"by":"another","since":1,"grace":86400}"#);
        store.put(&key(1).unwrap(), content).await.unwrap();
        second.give_back(&store).await;
        assert_eq!(store.len(), 1, "what is not its own stays");
    }

    #[tokio::test]
    async fn an_impossible_time_in_a_lease_is_harmless() {
        let store = Memory::new();
        store
            .put(
                &key(1).unwrap(),
                r#"{"by":"x","since":18446744073709551615}"#.into(),
            )
            .await
            .unwrap();
        assert!(matches!(
            take(&store, 100).await,
            Err(SweepError::Held { .. })
        ));
    }

    #[tokio::test]
    async fn an_unreadable_lease_is_left_alone() {
        let store = Memory::new();
        store.put(&key(1).unwrap(), "?".into()).await.unwrap();
        assert!(
            take(&store, 1_000_000)
                .await
                .unwrap_err()
                .to_string()
                .contains("an unknown process")
        );
    }
}
