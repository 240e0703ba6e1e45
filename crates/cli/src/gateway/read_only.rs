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

    fn spool(&self) -> Option<Arc<dyn Backend>> {
        Some(Arc::new(Self(self.0.spool()?)))
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

    /// A store with a spool.
    #[derive(Debug)]
    struct WithSpool(Memory, Memory);

    #[async_trait]
    impl Backend for WithSpool {
        fn locate(&self, key: &Key) -> Location {
            self.0.locate(key)
        }
        fn resolve(&self, location: &str) -> Option<Key> {
            self.0.resolve(location)
        }
        fn spool(&self) -> Option<Arc<dyn Backend>> {
            Some(Arc::new(self.1.clone()))
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

    #[tokio::test]
    async fn what_is_stored_is_read_wherever_it_is_and_nothing_is_added() {
        let key = Key::new("trunc/a").unwrap();
        let (store, spool) = (Memory::new(), Memory::new());
        store.put(&key, "in the store".into()).await.unwrap();
        spool.put(&key, "on this machine".into()).await.unwrap();
        let read_only = ReadOnly(Arc::new(WithSpool(store.clone(), spool)));
        let spool = read_only.spool().unwrap();
        assert_eq!(
            spool.read(&key, 0..99).await.unwrap().bytes,
            "on this machine"
        );
        for store in [&read_only as &dyn Backend, &*spool] {
            assert!(store.put(&key, "new".into()).await.is_err());
            assert!(
                store.writer().await.is_err()
                    && store.remove(&key, SystemTime::now()).await.is_err()
            );
        }
        assert_eq!(store.len(), 1);
        let read = read_only.read(&key, 0..99).await;
        assert_eq!(read.unwrap().bytes, "in the store");
        let known = ReadOnly(Arc::new(store.clone()));
        assert_eq!(known.store_id(), store.store_id());
    }
}
