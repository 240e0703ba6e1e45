//! A store whose locations are hashes, as the plug's models read them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::{Backend, BackendError, Entry, Key, Location, PutOutcome, ReadRange, Writer};

/// The word before a hash. Older versions of LiteLLM look for it in the text.
const MARK: &str = "hash=";

/// Number of digits of a hash: the longest that LiteLLM takes.
pub(super) const DIGITS: usize = 24;

/// The location that hints give for a hash.
pub(super) fn location(hash: &str) -> Location {
    Location::new(format!("{MARK}{hash}"))
}

/// Number of digits at the beginning of a hash that are those of its day.
const DAY_DIGITS: usize = 4;

/// The first digits of the hashes that are made at `now`: those of the day since 1970. What is stored
/// on one day is a conversation of its own for a sweep, and is never named anew on another day.
pub(super) fn day(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:04x}", since.as_secs() / (24 * 60 * 60) % 0x1_0000)
}

/// The day of a hash, which names the session that it is stored in.
pub(super) fn day_of(hash: &str) -> &str {
    hash.get(..DAY_DIGITS).unwrap_or_default()
}

/// Another store, whose results of one tenant are located by their hashes. Everything else is
/// located as the other store does it, and nothing but those hashes is found by a location.
#[derive(Debug)]
pub(super) struct ByHash {
    pub(super) store: Arc<dyn Backend>,
    /// The prefix of the tenant's keys, known once its session is.
    pub(super) prefix: Arc<OnceLock<String>>,
}

impl ByHash {
    /// The folder of the results of a day.
    fn folder(&self, day: &str) -> Option<String> {
        let [results, _] = Key::FOLDERS;
        Some(format!("{}{day}/{results}/", self.prefix.get()?))
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == DIGITS
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for ByHash {
    fn locate(&self, key: &Key) -> Location {
        let hash = key.as_str().rsplit('/').next().unwrap_or_default();
        match self.folder(day_of(hash)) {
            Some(folder) if is_hash(hash) && key.as_str() == format!("{folder}{hash}") => {
                location(hash)
            }
            _ => self.store.locate(key),
        }
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        let hash = location.strip_prefix(MARK).filter(|hash| is_hash(hash))?;
        Key::new(format!("{}{hash}", self.folder(day_of(hash))?)).ok()
    }

    fn now(&self) -> SystemTime {
        self.store.now()
    }

    fn store_id(&self) -> Option<usize> {
        self.store.store_id()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.store.put(key, content).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        self.store.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.store.read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.store.list()
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        self.store.remove(key, before).await
    }

    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        self.store.tidy(before).await
    }
}

#[cfg(test)]
mod tests {
    use offcut::backend::Memory;

    use super::*;

    #[test]
    fn only_hashes_of_the_own_tenant_are_locations() {
        let store = |prefix: &str| ByHash {
            store: Arc::new(Memory::new()),
            prefix: Arc::new(OnceLock::from(prefix.to_owned())),
        };
        let (own, other) = (store("plug-a/"), store("plug-b/"));
        let hash = "0123456789abcdef01234567";
        let key = Key::new(format!("plug-a/0123/trunc/{hash}")).unwrap();
        assert_eq!(own.locate(&key), location(hash));
        assert_eq!(own.resolve(location(hash).as_str()), Some(key.clone()));
        assert_ne!(other.locate(&key), location(hash));
        assert_ne!(other.resolve(location(hash).as_str()), Some(key));
        let path = own.store.locate(&Key::new("plug-b/0123/trunc/x").unwrap());
        for text in [
            path.as_str(),
            "hash=",
            "hash=0123456789ABCDEF01234567",
            "hash=../../../../../../../etc",
        ] {
            assert_eq!(own.resolve(text), None, "{text}");
        }
    }
}
