//! The bytes of a result that have left memory, and the storing of its texts.

use std::ops::Range;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::held::Piece;
use super::job::{Job, MAX_TAKEN_BACK};
use crate::backend::content::{BLOCK, Id};
use crate::backend::key::{digest, digest_from_sha256};
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

    fn written(&mut self) -> Result<&mut dyn Writer, BackendError> {
        match &mut self.writer {
            Some(writer) => Ok(&mut **writer),
            None => Err(BackendError::new(
                ErrorKind::Other,
                "spilled bytes can't be read back: the store failed earlier",
            )),
        }
    }

    pub(super) async fn read(&mut self, mut range: Range<u64>) -> Result<Vec<u8>, BackendError> {
        let length = range.end.saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        while !range.is_empty() {
            bytes.extend_from_slice(&self.block(&mut range).await?);
        }
        Ok(bytes)
    }

    /// Reads bytes from the start of `range`, and moves the start past them. Tries again on any error:
    /// once the store has failed, the writer may have the only copy.
    async fn block(&mut self, range: &mut Range<u64>) -> Result<Bytes, BackendError> {
        let next = range.start..range.end.min(range.start + BLOCK);
        let (writer, mut attempt) = (self.written()?, 1);
        let bytes = loop {
            match writer.read(next.clone()).await {
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
        range.start += bytes.len() as u64;
        Ok(bytes)
    }

    /// Names all bytes, the result's `number`-th text.
    async fn name(
        &mut self,
        job: Job<'_>,
        id: &Id,
        number: usize,
    ) -> Result<Location, BackendError> {
        let digest = digest_from_sha256(&self.sha256.clone().finalize().into());
        let target = job.target(id, number, &digest);
        target.name(job.backend, self.written()?).await
    }

    /// Stores `pieces`, one after the other, as the result's `number`-th text. The spilled ones are of these bytes.
    pub(super) async fn store(
        &mut self,
        job: Job<'_>,
        id: &Id,
        number: usize,
        mut pieces: Vec<Piece>,
    ) -> Result<Location, BackendError> {
        match &mut pieces[..] {
            // All spilled bytes are this text, which only needs a name.
            [Piece::Spilled(range)] if *range == (0..self.length) => {
                let named = self.name(job, id, number).await;
                // A longer text than may be shown instead gets one more writer.
                if named.is_ok() || self.length <= MAX_TAKEN_BACK {
                    return named;
                }
            }
            [Piece::Memory(content)] => {
                let content = Bytes::from(std::mem::take(content));
                let target = job.target(id, number, &digest(&content));
                return target.save(job.backend, content).await;
            }
            _ => {}
        }
        let mut whole = Self::default();
        for piece in pieces {
            match piece {
                Piece::Memory(bytes) => whole.write(job, bytes.into()).await?,
                Piece::Spilled(mut range) => {
                    while !range.is_empty() {
                        whole.write(job, self.block(&mut range).await?).await?;
                    }
                }
            }
        }
        whole.name(job, id, number).await
    }
}
