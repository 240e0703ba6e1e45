//! The bytes of a result that have left memory, and the storing of its texts.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use crate::backend::key::{digest, digest_from_sha256};
use crate::backend::layout::Phase;
use crate::backend::range::within;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::job::Job;
use crate::backend::content::{self, BlockReader, Id, Name, Ranges, Target};
use crate::backend::{BackendError, ErrorKind, Location, PutOutcome, ReadRange, Writer};

/// Number of attempts at reading a block back from a writer.
const ATTEMPTS: usize = 8;

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

    pub(super) async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>, BackendError> {
        let length = range.end.saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        if !range.is_empty() {
            let mut blocks = blocks(opened(&mut self.writer)?, range);
            while let Some(block) = blocks.next().await? {
                bytes.extend_from_slice(&block.bytes);
            }
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
            return name(job, id, number, opened(spilled)?, *all).await;
        }
        if let [Source::Bytes(content)] = &mut sources[..] {
            let content = Bytes::from(std::mem::take(content));
            let digest = digest(&content);
            let name = id.name();
            let name = name.unwrap_or_else(|| Name::of_digest(digest.clone()));
            let (roots, name) = (&job.session.roots, name.part(number));
            let target = Target::with_digest(roots, Phase::Truncate, &name, &digest);
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
                Source::Spilled(range) => {
                    length += range.end - range.start;
                    let mut blocks = blocks(opened(spilled)?, range);
                    while let Some(block) = blocks.next().await? {
                        writer.write(block.bytes).await?;
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
        if content::name(backend, writer, &key).await? != PutOutcome::Taken {
            return Ok(backend.locate(&key));
        }
    }
    let mut sha256 = Sha256::new();
    let mut blocks = blocks(writer, 0..length);
    while let Some(block) = blocks.next().await? {
        sha256.update(&block.bytes);
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

/// The `length` bytes written to a writer.
struct Written<'w> {
    writer: &'w mut dyn Writer,
    length: u64,
}

impl Ranges for Written<'_> {
    /// Retries on any error: after a failure of the store, the writer may have the only copy.
    async fn read(&mut self, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let range = within(&range, self.length);
        let mut attempt = 1;
        loop {
            match self.writer.read(range.clone()).await {
                Err(error) if attempt < ATTEMPTS => {
                    tracing::warn!(attempt, %error, "reading back spilled bytes failed; retrying");
                }
                answer => {
                    return Ok(ReadRange {
                        bytes: answer?,
                        total: self.length,
                        stored_at: SystemTime::now(),
                    });
                }
            }
            attempt += 1;
        }
    }

    fn too_short(&self, _: u64, _: u64) -> String {
        "the store returned fewer bytes than were written: check the store".to_owned()
    }
}

/// The bytes of `range`, written to `writer` before, block by block.
fn blocks(writer: &mut dyn Writer, range: Range<u64>) -> BlockReader<Written<'_>> {
    let length = range.end;
    BlockReader::of(Written { writer, length }, range)
}
