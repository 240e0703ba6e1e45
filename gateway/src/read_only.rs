//! A store that accepts no writes, for requests that make no decisions.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};

/// Another store, in which nothing can be stored.
#[derive(Debug)]
pub(crate) struct ReadOnly(pub(crate) Arc<dyn Backend>);

fn refused() -> BackendError {
    BackendError::new(
        ErrorKind::Denied,
        "nothing is stored for this request, because it decides nothing",
    )
}

#[async_trait]
impl Backend for ReadOnly {
    fn locate(&self, key: &Key) -> Location {
        self.0.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.0.resolve(location)
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

    fn can_be_swept(&self) -> bool {
        false
    }
}
