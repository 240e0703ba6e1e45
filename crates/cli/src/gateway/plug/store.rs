//! A store whose locations are hashes, as the plug's models read them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

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

/// Another store, whose results of one tenant are located by their hashes. Everything else is
/// located as the other store does it, and nothing but those hashes is found by a location.
#[derive(Debug)]
pub(super) struct ByHash {
    pub(super) store: Arc<dyn Backend>,
    /// The prefix of the tenant's keys, known once its session is.
    pub(super) prefix: Arc<OnceLock<String>>,
}

impl ByHash {
    /// The folder of results.
    fn folder(&self) -> Option<String> {
        let [results, _] = Key::FOLDERS;
        Some(format!("{}{results}/", self.prefix.get()?))
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
        let folder = self.folder();
        let name = folder.and_then(|folder| key.as_str().strip_prefix(&*folder));
        match name {
            Some(hash) if is_hash(hash) => location(hash),
            _ => self.store.locate(key),
        }
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        let hash = location.strip_prefix(MARK).filter(|hash| is_hash(hash))?;
        Key::new(format!("{}{hash}", self.folder()?)).ok()
    }

    fn store_id(&self) -> Option<usize> {
        self.store.store_id()
    }

    /// None: what is in a spool has a path, and a model that reads by hashes can't open it.
    fn spool(&self) -> Option<Arc<dyn Backend>> {
        None
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.store.put(key, content).await
    }

    async fn put_then_find(
        &self,
        key: &Key,
        content: Bytes,
        other: &Key,
    ) -> Result<(PutOutcome, bool), BackendError> {
        self.store.put_then_find(key, content, other).await
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

    fn can_be_swept(&self) -> bool {
        self.store.can_be_swept()
    }

    async fn remove(&self, key: &Key) -> Result<(), BackendError> {
        self.store.remove(key).await
    }

    async fn copy(&self, from: &Key, to: &Key) -> Result<PutOutcome, BackendError> {
        self.store.copy(from, to).await
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
        let key = Key::new(format!("plug-a/trunc/{hash}")).unwrap();
        assert_eq!(own.locate(&key), location(hash));
        assert_eq!(own.resolve(location(hash).as_str()), Some(key.clone()));
        assert_ne!(other.locate(&key), location(hash));
        assert_ne!(other.resolve(location(hash).as_str()), Some(key));
        let path = own.store.locate(&Key::new("plug-b/trunc/x").unwrap());
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
