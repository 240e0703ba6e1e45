//! A store that accepts no new content, for requests that make no decisions.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};

/// Another store, in which nothing new can be stored.
#[derive(Debug)]
pub(crate) struct ReadOnly(pub(crate) Arc<dyn Backend>);

fn refused() -> BackendError {
    BackendError::new(
        ErrorKind::Denied,
        "nothing is stored for this request, because it decides nothing",
    )
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for ReadOnly {
    fn locate(&self, key: &Key) -> Location {
        self.0.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.0.resolve(location)
    }

    fn now(&self) -> SystemTime {
        self.0.now()
    }

    fn store_id(&self) -> Option<usize> {
        self.0.store_id()
    }

    async fn put(&self, _: &Key, _: Bytes) -> Result<PutOutcome, BackendError> {
        Err(refused())
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        Err(refused())
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.0.read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.0.list()
    }

    async fn remove(&self, _: &Key, _: SystemTime) -> Result<(), BackendError> {
        Err(refused())
    }

    async fn tidy(&self, _: SystemTime) -> Result<u64, BackendError> {
        Err(refused())
    }
}

#[cfg(test)]
mod tests {
    use offcut::backend::Memory;

    use super::*;

    #[tokio::test]
    async fn what_is_stored_is_read_and_nothing_is_added() {
        let key = Key::new("trunc/a").unwrap();
        let store = Memory::new();
        store.put(&key, "in the store".into()).await.unwrap();
        let read_only = ReadOnly(Arc::new(store.clone()));
        assert!(read_only.put(&key, "new".into()).await.is_err());
        assert!(read_only.writer().await.is_err());
        assert!(read_only.remove(&key, SystemTime::now()).await.is_err());
        assert_eq!(store.len(), 1);
        let read = read_only.read(&key, 0..99).await;
        assert_eq!(read.unwrap().bytes, "in the store");
        assert_eq!(read_only.store_id(), store.store_id());
    }
}
