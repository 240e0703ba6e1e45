//! A store that also fails where `Faulty` does not: on opening a writer.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, Memory, PutOutcome, ReadRange, Writer,
};
use offcut_testkit::Faulty;

#[derive(Clone, Debug)]
pub(crate) struct Rigged {
    pub(crate) store: Faulty<Memory>,
    /// True if no writer can be opened.
    pub(crate) is_shut: bool,
}

impl Rigged {
    pub(crate) fn new() -> Self {
        Self {
            store: Faulty::new(Memory::named("t").unwrap()),
            is_shut: false,
        }
    }

    pub(crate) fn shut() -> Self {
        Self {
            is_shut: true,
            ..Self::new()
        }
    }
}

#[async_trait]
impl Backend for Rigged {
    fn locate(&self, key: &Key) -> Location {
        self.store.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.store.resolve(location)
    }

    fn store_id(&self) -> Option<usize> {
        self.store.store_id()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.store.put(key, content).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        if self.is_shut {
            return Err(BackendError::new(
                ErrorKind::Unavailable,
                "the store is shut",
            ));
        }
        self.store.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.store.read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.store.list()
    }
}
