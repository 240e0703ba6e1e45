//! The age of stored content: how long it may be named anew, and what keeps it from being swept.
//!
//! A sweep removes a conversation in which nothing was stored or read for at least twice
//! [`REUSED_FOR`], unless a transcript names it. The library never makes a hint to content that was
//! stored longer than [`REUSED_FOR`] ago, but stores it under another name. So a hint to what a sweep
//! removes is older than [`REUSED_FOR`], and its transcript has been written.
//!
//! The library stores and names content by [`is_taken`] alone.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::backend::{Backend, Key, PutOutcome};

/// Time after which equal content is stored again under another name, and decisions are made anew.
pub const REUSED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns true if what was stored at `stored_at` may not be named by a new hint.
pub(crate) fn is_outdated(store: &dyn Backend, stored_at: SystemTime) -> bool {
    let age = store.now().duration_since(stored_at);
    age.is_ok_and(|age| age > REUSED_FOR)
}

/// The number of a day since 1970.
pub(crate) fn day(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / (24 * 60 * 60)
}

/// Returns true if the content has to be put under another key. What lies there from long ago counts as
/// taken, also if it is equal.
pub(crate) fn is_taken(store: &dyn Backend, put: &PutOutcome) -> bool {
    match put {
        PutOutcome::Stored => false,
        PutOutcome::AlreadyThere { stored_at } => is_outdated(store, *stored_at),
        PutOutcome::Taken => true,
    }
}

/// Conversations whose old content a process has read today, which it has noted in their stores. For
/// a sweep, a conversation that is read is as young as one in which something is stored.
#[derive(Debug, Default)]
pub(crate) struct Marks(Mutex<(u64, HashSet<Key>)>);

impl Marks {
    /// Notes that content of the conversation of `key` is read, once a day. If the store fails, the
    /// next reading tries again.
    pub(crate) async fn mark(&self, store: &dyn Backend, key: &Key) {
        let today = day(store.now());
        let Some(note) = key.conversation().and_then(|conversation| {
            Key::new(format!("{conversation}{}/read-{today}", Key::META)).ok()
        }) else {
            return;
        };
        let is_new = {
            let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if noted.0 != today {
                *noted = (today, HashSet::new());
            }
            noted.1.insert(note.clone())
        };
        if is_new && let Err(error) = store.put(&note, Bytes::new()).await {
            let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            noted.1.remove(&note);
            tracing::debug!(%note, %error, "could not note that a conversation was read");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::content::{Stored, Target};
    use crate::backend::key::digest;
    use crate::backend::{Memory, content::Id, content::Roots, layout::Phase};

    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn key(path: &str) -> Key {
        Key::new(path).unwrap()
    }

    /// Stores twice with `age` in between, and returns the names.
    async fn twice(age: Duration, streams: bool) -> [String; 3] {
        let mut store = Memory::new();
        let (roots, id) = (Roots::default(), Id::of_call("call_1"));
        let target = Target::new(&roots, Phase::Clear, &id, "", None, &digest(b"text"));
        let mut locations = Vec::new();
        for _ in 0..3 {
            let location = if streams {
                let mut writer = store.writer().await.unwrap();
                writer.write("text".into()).await.unwrap();
                target.name(&store, &mut *writer).await
            } else {
                target.save(&store, "text".into()).await
            };
            locations.push(location.unwrap().to_string());
            store = store.later_by(age);
        }
        locations.try_into().unwrap()
    }

    #[tokio::test]
    async fn w1_old_content_is_stored_again_under_another_name() {
        for streams in [false, true] {
            let [first, second, third] = twice(23 * HOUR, streams).await;
            assert_eq!(first, second, "23 hours");
            assert_ne!(first, third, "46 hours");
            let [first, second, third] = twice(25 * HOUR, streams).await;
            assert!(second.starts_with(&format!("{first}-")), "{second}");
            assert!(third != first && third != second, "{third}");
        }
    }

    #[tokio::test]
    async fn w2_reading_old_content_is_noted_once_a_day() {
        let store = Memory::new();
        store.put(&key("s1/trunc/a"), "text".into()).await.unwrap();
        let marks = Arc::<Marks>::default();
        let read = async |store: &Memory| {
            let stored = Stored {
                marks: Some(marks.clone()),
                ..Stored::new(Arc::new(store.clone()), key("s1/trunc/a"))
            };
            stored.read(0..9).await.unwrap();
        };
        let young = store.later_by(23 * HOUR);
        read(&young).await;
        assert_eq!(young.len(), 1);
        let old = store.later_by(25 * HOUR);
        for _ in 0..3 {
            read(&old).await;
        }
        assert_eq!(old.len(), 2);
        let note = format!("s1/meta/read-{}", day(old.now()));
        assert!(old.read(&key(&note), 0..1).await.is_ok(), "{note}");
        read(&old.later_by(24 * HOUR)).await;
        assert_eq!(old.len(), 3, "another day");
    }
}
