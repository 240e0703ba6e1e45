//! The bytes of a result that have left memory.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::job::Job;
use crate::backend::content::{BLOCK, Id};
use crate::backend::key::digest_from_sha256;
use crate::backend::{BackendError, ErrorKind, Location, Writer};

/// Number of attempts at reading a block back from a writer.
const ATTEMPTS: usize = 8;

/// Bytes that were written to a store and have no name yet.
#[derive(Default)]
pub(super) struct Spill {
    /// Opened for the first bytes.
    writer: Option<Box<dyn Writer>>,
    sha256: Sha256,
    pub(super) length: u64,
}

impl Spill {
    pub(super) async fn write(&mut self, job: Job<'_>, bytes: Bytes) -> Result<(), BackendError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(job.backend.writer().await?),
        };
        writer.write(bytes.clone()).await?;
        self.sha256.update(&bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// All bytes.
    pub(super) async fn read(&mut self) -> Result<Vec<u8>, BackendError> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.length).unwrap_or_default());
        while (bytes.len() as u64) < self.length {
            bytes.extend_from_slice(&self.block(bytes.len() as u64).await?);
        }
        Ok(bytes)
    }

    /// Reads bytes from `start` on. Tries again on any error: once the store has failed, the writer may have the only
    /// copy.
    async fn block(&mut self, start: u64) -> Result<Bytes, BackendError> {
        let range = start..self.length.min(start + BLOCK);
        let mut attempt = 1;
        let bytes = loop {
            match self.written()?.read(range.clone()).await {
                Err(error) if attempt < ATTEMPTS => {
                    tracing::warn!(attempt, %error, "reading back spilled bytes failed; retrying");
                    attempt += 1;
                }
                answer => break answer?,
            }
        };
        if bytes.is_empty() {
            return Err(BackendError::new(
                ErrorKind::Other,
                "the store returned fewer bytes than were written: check the store",
            ));
        }
        Ok(bytes)
    }

    /// Names all bytes, the text of the result with this `id`.
    pub(super) async fn name(&mut self, job: Job<'_>, id: &Id) -> Result<Location, BackendError> {
        let digest = digest_from_sha256(&self.sha256.clone().finalize().into());
        let target = job.target(id, 1, &digest);
        target.name(job.backend, &mut **self.written()?).await
    }

    /// Copies all bytes to another writer, and names them there.
    pub(super) async fn copy(&mut self, job: Job<'_>, id: &Id) -> Result<Location, BackendError> {
        let mut copy = Self::default();
        while copy.length < self.length {
            copy.write(job, self.block(copy.length).await?).await?;
        }
        copy.name(job, id).await
    }

    fn written(&mut self) -> Result<&mut Box<dyn Writer>, BackendError> {
        let message = "nothing was written to the store";
        let error = || BackendError::new(ErrorKind::Other, message);
        self.writer.as_mut().ok_or_else(error)
    }
}
