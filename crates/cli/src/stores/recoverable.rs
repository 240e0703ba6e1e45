//! A store that keeps a failed writer, since it may have the only copy of the input.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::{Backend, BackendError, Entry, Key, Location, PutOutcome, ReadRange, Writer};

use crate::input::Input;

/// Delegates everything to the store in it.
#[derive(Debug)]
pub(crate) struct RecoverableStore {
    pub(crate) store: Arc<dyn Backend>,
    pub(crate) input: Input,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for RecoverableStore {
    fn locate(&self, key: &Key) -> Location {
        self.store.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.store.resolve(location)
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
        let writer = Some(self.store.writer().await?);
        Ok(Box::new(RecoverableWriter {
            writer,
            input: self.input.clone(),
            length: 0,
            is_failed: false,
        }))
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

struct RecoverableWriter {
    /// `None` while it is dropped.
    writer: Option<Box<dyn Writer>>,
    input: Input,
    length: u64,
    /// True if writing or storing has failed.
    is_failed: bool,
}

impl RecoverableWriter {
    fn writer(&mut self) -> Result<&mut Box<dyn Writer>, BackendError> {
        let gone = || {
            BackendError::new(
                offcut::backend::ErrorKind::Other,
                "the writer is gone: open another one",
            )
        };
        self.writer.as_mut().ok_or_else(gone)
    }
}

impl fmt::Debug for RecoverableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoverableWriter")
            .field("writer", &self.writer)
            .finish_non_exhaustive()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Writer for RecoverableWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        let length = chunk.len();
        // Until the write returns, its outcome is unknown.
        let was_failed = std::mem::replace(&mut self.is_failed, true);
        self.writer()?.write(chunk).await?;
        self.is_failed = was_failed;
        self.length += length as u64;
        self.input.is_written(length);
        Ok(())
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        let read = self.writer()?.read(range).await;
        self.is_failed |= read.is_err();
        read
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        self.is_failed = true;
        let put = self.writer()?.finish(key).await?;
        self.is_failed = false;
        Ok(put)
    }
}

impl Drop for RecoverableWriter {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take().filter(|_| self.is_failed) {
            self.input.give_up(writer, self.length);
        }
    }
}
