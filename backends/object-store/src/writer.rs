//! Content that arrives in chunks.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use offcut::ErrorChain;
use offcut::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome, Writer};
use sha2::{Digest, Sha256};

use crate::objects::Objects;
use crate::put::{Content, MAX_SINGLE_PUT};

/// Writes to a file of the spool, and uploads from it once the content has its name. An object
/// store takes nothing without a name, and the way to store content depends on its final length. If
/// the store fails, the content gets its name in the spool.
#[derive(Debug)]
pub(crate) struct ObjectWriter {
    store: Objects,
    /// `None` once the content has its name, or after a write that was dropped.
    spool: Option<Box<dyn Writer>>,
    length: u64,
    sha256: Sha256,
    /// The error of the store that failed. It is not tried again.
    failure: Option<BackendError>,
}

impl ObjectWriter {
    pub(crate) async fn open(store: &Objects) -> Result<Self, BackendError> {
        Ok(Self {
            store: store.clone(),
            spool: Some(store.spool.writer().await?),
            length: 0,
            sha256: Sha256::new(),
            failure: None,
        })
    }
}

fn closed() -> BackendError {
    let why = "this writer's content is stored already, or was discarded after an error: open another writer";
    BackendError::new(ErrorKind::Other, why)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Writer for ObjectWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        // Taken out during the write: if this future is dropped half-way, the content of the file
        // is unknown.
        let mut spool = self.spool.take().ok_or_else(closed)?;
        let written = spool.write(chunk.clone()).await;
        // After an error too: earlier content can still be read.
        self.spool = Some(spool);
        written?;
        self.length += chunk.len() as u64;
        self.sha256.update(&chunk);
        Ok(())
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        self.spool.as_mut().ok_or_else(closed)?.read(range).await
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        let writer = self.spool.as_mut().ok_or_else(closed)?;
        let is_addressed = key.is_addressed_by(&self.sha256.clone().finalize().into());
        if self.length > MAX_SINGLE_PUT && !is_addressed {
            return Ok(PutOutcome::Taken);
        }
        let uploaded = match self.failure.take() {
            Some(failure) => Err(failure),
            None => {
                let (writer, length) = (&mut **writer, self.length);
                let mut content = Content::Written { writer, length };
                self.store.store(key, &mut content).await
            }
        };
        let put = match uploaded {
            // Under any other key, another machine may store other content.
            Err(failure) if !is_addressed => {
                self.failure = Some(failure);
                Ok(PutOutcome::Taken)
            }
            // A trial of the store must fail with it.
            Err(failure) if key.conversation().is_none() => Err(failure),
            Err(failure) => match writer.finish(key).await {
                Ok(PutOutcome::Stored) => {
                    tracing::warn!(
                        error = %ErrorChain(&failure),
                        spool = %self.store.spool.path().display(),
                        "the store failed; the content is kept in the spool, on this machine only"
                    );
                    Ok(PutOutcome::Stored)
                }
                Ok(put) => {
                    self.failure = Some(failure);
                    Ok(put)
                }
                Err(_) => Err(failure),
            },
            put => put,
        };
        if let Ok(PutOutcome::Stored) = put {
            self.spool = None;
        }
        put
    }
}
