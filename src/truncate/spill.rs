//! The bytes of a result that have left memory, and the storing of its texts.

use std::ops::Range;
use std::sync::Arc;

use crate::backend::key::digest_from_sha256;
use crate::backend::layout::Phase;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::job::Job;
use crate::backend::content::{self, BLOCK, Id, Name, Target, is_taken};
use crate::backend::{BackendError, ErrorKind, Location, Writer};

/// Number of attempts at reading a block back from a writer.
const ATTEMPTS: usize = 8;

/// A stream that could not be stored is shown whole up to this many bytes; more does not fit in
/// memory or in a context.
pub(super) const MAX_TAKEN_BACK: u64 = 16 << 20;

/// The one writer of a result: takes bytes that leave memory, gives them back, and stores texts.
pub(super) struct Spill {
    job: Arc<Job>,
    id: Id,
    /// Opened for the first bytes.
    writer: Option<Box<dyn Writer>>,
    /// Number of bytes written.
    pub(super) length: u64,
}

/// Content to store, or a piece of it.
pub(super) enum Source {
    Bytes(Vec<u8>),
    /// A range of the spilled bytes.
    Spilled(Range<u64>),
}

impl Spill {
    pub(super) fn new(job: Arc<Job>, id: Id) -> Self {
        Self {
            job,
            id,
            writer: None,
            length: 0,
        }
    }

    pub(super) async fn write(&mut self, bytes: Bytes) -> Result<(), BackendError> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(self.job.backend.writer().await?),
        };
        let length = bytes.len() as u64;
        writer.write(bytes).await?;
        self.length += length;
        Ok(())
    }

    /// Forgets the spilled bytes. Later bytes go to a new writer.
    pub(super) fn discard(&mut self) {
        (self.writer, self.length) = (None, 0);
    }

    pub(super) async fn read(&mut self, mut range: Range<u64>) -> Result<Vec<u8>, BackendError> {
        let length = range.end.saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        while !range.is_empty() {
            bytes.extend_from_slice(&block(opened(&mut self.writer)?, &mut range).await?);
        }
        Ok(bytes)
    }

    /// Stores the sources, one after the other, as the result's `number`-th text, counted from 1.
    pub(super) async fn store(
        &mut self,
        number: usize,
        mut sources: Vec<Source>,
    ) -> Result<Location, BackendError> {
        let Self {
            job,
            id,
            writer: spilled,
            length: all,
        } = self;
        // All spilled bytes are this text, which only needs a name.
        if matches!(&sources[..], [Source::Spilled(range)] if *range == (0..*all)) {
            let named = name(job, id, number, opened(spilled)?, *all).await;
            // A longer text than may be shown instead gets one more writer.
            if named.is_ok() || *all <= MAX_TAKEN_BACK {
                return named;
            }
        }
        if let [Source::Bytes(content)] = &mut sources[..] {
            let content = Bytes::from(std::mem::take(content));
            let name = id.name_of(&content).part(number);
            let target = Target::new(&job.session.roots, Phase::Truncate, &name, &content);
            return target.save(&*job.backend, content).await;
        }
        let mut writer = job.backend.writer().await?;
        let mut length = 0;
        for source in sources {
            match source {
                Source::Bytes(bytes) => {
                    length += bytes.len() as u64;
                    writer.write(bytes.into()).await?;
                }
                Source::Spilled(mut range) => {
                    length += range.end - range.start;
                    while !range.is_empty() {
                        writer
                            .write(block(opened(spilled)?, &mut range).await?)
                            .await?;
                    }
                }
            }
        }
        name(job, id, number, &mut *writer, length).await
    }
}

/// Names the `length` bytes that were written to `writer`.
async fn name(
    job: &Job,
    id: &Id,
    number: usize,
    writer: &mut dyn Writer,
    length: u64,
) -> Result<Location, BackendError> {
    let (backend, roots) = (&*job.backend, &job.session.roots);
    let name = id.name().map(|name| name.part(number));
    // The digest costs reading everything again, so it is computed only if needed.
    if let Some(name) = &name {
        let key = content::key(roots, Phase::Truncate, name);
        if !is_taken(backend, &writer.finish(&key).await?) {
            return Ok(backend.locate(&key));
        }
    }
    let (mut sha256, mut range) = (Sha256::new(), 0..length);
    while !range.is_empty() {
        sha256.update(block(writer, &mut range).await?);
    }
    let digest = digest_from_sha256(&sha256.finalize().into());
    let target = |name| Target::with_digest(roots, Phase::Truncate, name, &digest);
    let target = match &name {
        Some(name) => target(name).second_only(),
        None => target(&Name::of_digest(digest.clone()).part(number)),
    };
    target.name(backend, writer).await
}

fn opened(writer: &mut Option<Box<dyn Writer>>) -> Result<&mut dyn Writer, BackendError> {
    match writer {
        Some(writer) => Ok(&mut **writer),
        None => Err(BackendError::new(
            ErrorKind::Other,
            "spilled bytes can't be read back: the store failed earlier",
        )),
    }
}

/// Reads bytes from the start of `range`, which was written to `writer`, and moves the start past them. Tries
/// again on any error: once the store has failed, the writer may have the only copy.
async fn block(writer: &mut dyn Writer, range: &mut Range<u64>) -> Result<Bytes, BackendError> {
    let next = range.start..range.end.min(range.start + BLOCK);
    let mut attempt = 1;
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
