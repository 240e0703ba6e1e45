//! A store that fails where `Faulty` does not: on opening a writer, or permanently, with a separate
//! spool.

use std::ops::Range;
use std::sync::Arc;

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
    pub(crate) spool: Option<Memory>,
}

impl Rigged {
    pub(crate) fn new() -> Self {
        Self {
            store: Faulty::new(Memory::named("t").unwrap()),
            is_shut: false,
            spool: None,
        }
    }

    pub(crate) fn shut() -> Self {
        Self {
            is_shut: true,
            ..Self::new()
        }
    }

    pub(crate) fn with_spool() -> Self {
        Self {
            spool: Some(Memory::named("spool").unwrap()),
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

    fn spool(&self) -> Option<Arc<dyn Backend>> {
        self.spool
            .clone()
            .map(|spool| Arc::new(spool) as Arc<dyn Backend>)
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
        Ok(Box::new(Spooling {
            inner: self.store.writer().await?,
            spool: self.spool.clone(),
            spooled: Vec::new(),
        }))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.store.read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.store.list()
    }
}

/// A writer that also spools its chunks, if there is a spool.
#[derive(Debug)]
struct Spooling {
    inner: Box<dyn Writer>,
    spool: Option<Memory>,
    spooled: Vec<u8>,
}

#[async_trait]
impl Writer for Spooling {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        if self.spool.is_some() {
            self.spooled.extend_from_slice(&chunk);
        }
        self.inner.write(chunk).await
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        self.inner.read(range).await
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        self.inner.finish(key).await
    }

    async fn finish_in_spool(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        match &self.spool {
            Some(spool) => spool.put(key, self.spooled.clone().into()).await,
            None => self.inner.finish_in_spool(key).await,
        }
    }
}
