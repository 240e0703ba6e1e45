//! Content that arrives in chunks.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use offcut::backend::{BackendError, ErrorKind, Key, PutOutcome, Writer};
use sha2::{Digest, Sha256};

use crate::content::{Content, MAX_SINGLE_PUT};
use crate::objects::Objects;

/// Writes to a file of the spool, and uploads from it once the content has its name. An object
/// store takes nothing without a name, and the way to store content depends on its final length.
pub(crate) struct ObjectWriter {
    store: Objects,
    /// `None` once the content has its name, or after a write that was dropped.
    spool: Option<Box<dyn Writer>>,
    length: u64,
    sha256: Sha256,
}

impl ObjectWriter {
    pub(crate) fn new(store: Objects, spool: Box<dyn Writer>) -> Self {
        Self {
            store,
            spool: Some(spool),
            length: 0,
            sha256: Sha256::new(),
        }
    }

    fn spool(&mut self) -> Result<&mut Box<dyn Writer>, BackendError> {
        self.spool.as_mut().ok_or_else(|| {
            let why = "this writer's content is stored already, or was discarded after an error: open another writer";
            BackendError::new(ErrorKind::Other, why)
        })
    }

    /// Ends the writer if its content is stored, and returns `put`.
    fn named(&mut self, put: PutOutcome) -> PutOutcome {
        if put == PutOutcome::Stored {
            self.spool = None;
        }
        put
    }
}

impl fmt::Debug for ObjectWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            store,
            spool,
            length,
            sha256: _,
        } = self;
        f.debug_struct("ObjectWriter")
            .field("store", store)
            .field("length", length)
            .field("is_open", &spool.is_some())
            .finish_non_exhaustive()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Writer for ObjectWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        self.spool()?;
        // Taken out during the write: if this future is dropped half-way, the content of the file
        // is unknown.
        if let Some(mut spool) = self.spool.take() {
            let written = spool.write(chunk.clone()).await;
            // After an error too: earlier content can still be read.
            self.spool = Some(spool);
            written?;
            self.length += chunk.len() as u64;
            self.sha256.update(&chunk);
        }
        Ok(())
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        self.spool()?.read(range).await
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        let (store, length) = (self.store.clone(), self.length);
        if length > MAX_SINGLE_PUT && !key.is_addressed_by(&self.sha256.clone().finalize().into()) {
            self.spool()?;
            return Ok(PutOutcome::Taken);
        }
        let mut content = Content::Written {
            writer: &mut **self.spool()?,
            length,
        };
        let put = if length > MAX_SINGLE_PUT {
            store.upload(key, &mut content).await?
        } else {
            let content = content
                .read(0..length)
                .await
                .map_err(|trouble| store.storing(key, trouble))?;
            store
                .within_timeout(store.put_whole(key, &content))
                .await
                .map_err(|trouble| store.storing(key, trouble))?
        };
        Ok(self.named(put))
    }

    async fn finish_in_spool(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        let put = self.spool()?.finish(key).await?;
        Ok(self.named(put))
    }
}
