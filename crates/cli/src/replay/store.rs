//! A store with the locations of a folder `.offcut` in the agent's directory.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::{
    Backend, BackendError, Entry, Key, Location, Memory, PutOutcome, ReadRange, Writer,
};

const FOLDER: &str = ".offcut/";

/// Keeps content in memory.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Memory);

#[async_trait]
impl Backend for Scratch {
    fn locate(&self, key: &Key) -> Location {
        Location::new(format!("{FOLDER}{key}"))
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        Key::new(location.strip_prefix(FOLDER)?).ok()
    }

    fn store_id(&self) -> Option<usize> {
        self.0.store_id()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.0.put(key, content).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        self.0.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.0.read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.0.list()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_resolve_to_their_keys() {
        let (store, key) = (Scratch::default(), Key::new("trunc/a").unwrap());
        let location = store.locate(&key);
        assert_eq!(
            (location.as_str(), store.resolve(location.as_str())),
            (".offcut/trunc/a", Some(key))
        );
        assert_eq!(store.resolve("trunc/a"), None);
    }
}
