//! Truncates a stream. Over the limit its texts are one, whose bytes go to the store as they arrive.

use std::borrow::Cow;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use sha2::{Digest, Sha256};

use super::job::{Job, text_bytes};
use super::whole;
use crate::backend::content::{BLOCK, Id, MAX_WHOLE};
use crate::backend::key::digest_from_sha256;
use crate::backend::{BackendError, ErrorKind, Location, Writer};
use crate::content::{Chunk, Gathered, Part, ToolError};
use crate::error::OffloadError;
use crate::hint::{Draft, Kind};
use crate::preview::Sketch;
use crate::preview::text::decoding::{Decoder, text_of};
use crate::report::{Decision, Outcome, Reason};

/// A stream that could not be stored is shown whole up to this many bytes; more does not fit in
/// memory or in a context.
const MAX_TAKEN_BACK: u64 = 16 << 20;

/// Number of attempts at reading a block back from a writer.
const ATTEMPTS: usize = 8;

/// Number of parts of a stream over its limit that are held for a user's preview.
const MAX_PARTS: usize = 256;

/// Truncates a stream without a handler, reading it to its end. Returns the error that ended it early, too.
pub(super) async fn truncate(
    job: Job<'_>,
    mut stream: BoxStream<'static, Result<Chunk, ToolError>>,
) -> Result<(Vec<Part>, Decision, Option<ToolError>), OffloadError> {
    // A text in UTF-16 may have twice as many bytes as it has when it is shown, and a byte-order mark. One that has
    // more is over the limit, and so far that a hint is always a gain.
    let mut most = job.limit.saturating_mul(2).saturating_add(4);
    // A user's preview sees the whole text.
    if job.policy.hooks.preview.is_some() {
        most = most.max(MAX_WHOLE);
    }
    let (mut head, mut length) = (Gathered::default(), 0);
    let mut long: Option<LongText<'_>> = None;
    let interrupted = loop {
        let chunk = match stream.try_next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        if let Some(long) = &mut long {
            long.push(chunk).await?;
            continue;
        }
        length += match &chunk {
            Chunk::Bytes(bytes) => bytes.len() as u64,
            Chunk::Part(part) => job.counted_text(part).map_or(0, |text| text.len() as u64),
        };
        head.push(chunk);
        // Very many small parts take more memory than their bytes.
        let is_scattered = head.count() > MAX_PARTS && length > job.limit.saturating_mul(2);
        if length > most || is_scattered {
            let long = long.insert(LongText::new(job));
            for chunk in std::mem::take(&mut head).into_chunks() {
                long.push(chunk).await?;
            }
        }
    };
    let (parts, decision) = match long {
        Some(long) => long.end(interrupted.is_some()).await?,
        None => {
            let is_broken = interrupted.is_some() && head.is_open();
            whole::truncate(job, head.into_parts(), is_broken).await?
        }
    };
    Ok((parts, decision, interrupted))
}

/// A stream over its limit: one text, and other parts. Several texts are joined by line feeds.
struct LongText<'a> {
    job: Job<'a>,
    id: Id,
    decision: Decision,
    /// Number of parts before the text, once it has begun.
    at: Option<usize>,
    others: Vec<Part>,
    /// True if the last chunk was bytes, which the next ones continue.
    is_open: bool,
    bytes: u64,
    decoder: Decoder,
    sketch: Sketch,
    kept: Kept,
}

/// The bytes of a text.
enum Kept {
    /// In memory, up to a number of bytes.
    Memory(Vec<u8>, u64),
    Spilled(Spill),
    /// The store failed.
    Lost,
}

impl<'a> LongText<'a> {
    fn new(job: Job<'a>) -> Self {
        let (id, decision) = job.begin();
        Self {
            job,
            id,
            decision,
            at: None,
            others: Vec::new(),
            is_open: false,
            bytes: 0,
            decoder: Decoder::default(),
            sketch: Sketch::new(job.policy.preview),
            kept: Kept::Memory(Vec::new(), 0),
        }
    }

    async fn push(&mut self, chunk: Chunk) -> Result<(), OffloadError> {
        let (bytes, goes_on) = match chunk {
            Chunk::Bytes(bytes) if bytes.is_empty() => return Ok(()),
            Chunk::Bytes(bytes) => (bytes, std::mem::replace(&mut self.is_open, true)),
            Chunk::Part(part) => {
                self.is_open = false;
                let text = self.job.counted_text(&part).map(Cow::into_owned);
                let Some(text) = text else {
                    self.decision.bytes.before += text_bytes(&part);
                    self.others.push(part);
                    return Ok(());
                };
                (text.into(), false)
            }
        };
        self.decision.bytes.before += bytes.len() as u64;
        if self.at.is_some() && !goes_on {
            self.append(Bytes::from_static(b"\n")).await?;
        }
        self.at.get_or_insert(self.others.len());
        self.append(bytes).await
    }

    async fn append(&mut self, bytes: Bytes) -> Result<(), OffloadError> {
        let sketch = &mut self.sketch;
        self.decoder.feed(&bytes, &mut |text| sketch.push(text));
        self.bytes += bytes.len() as u64;
        let (mut spill, bytes) = match std::mem::replace(&mut self.kept, Kept::Lost) {
            Kept::Lost => return Ok(()),
            Kept::Memory(mut held, most) => {
                held.extend_from_slice(&bytes);
                if held.len() as u64 <= most {
                    self.kept = Kept::Memory(held, most);
                    return Ok(());
                }
                (Spill::default(), held.into())
            }
            Kept::Spilled(spill) => (spill, bytes),
        };
        match spill.write(self.job, bytes.clone()).await {
            Ok(()) => self.kept = Kept::Spilled(spill),
            Err(error) => self.take_back(spill, &bytes, error).await?,
        }
        Ok(())
    }

    /// After an error of the store, takes what was written back into memory, with `last` after it. It is lost if it is
    /// too long or can't be read, or if the original is not to be kept.
    async fn take_back(
        &mut self,
        mut spill: Spill,
        last: &[u8],
        error: BackendError,
    ) -> Result<(), OffloadError> {
        let rule = self.job.session.settings.on_offload_error;
        let keeps = rule.decide(&mut self.decision, error)?;
        let is_short = spill.length + last.len() as u64 <= MAX_TAKEN_BACK;
        if keeps
            && is_short
            && let Ok(mut bytes) = spill.read().await
        {
            bytes.extend_from_slice(last);
            // Beyond that the store is tried again.
            self.kept = Kept::Memory(bytes, MAX_TAKEN_BACK);
        }
        Ok(())
    }

    /// Ends the stream. Returns the parts to show.
    async fn end(mut self, is_interrupted: bool) -> Result<(Vec<Part>, Decision), OffloadError> {
        let sketch = &mut self.sketch;
        self.decoder.end(&mut |text| sketch.push(text));
        if let Some(page) = self.page().await {
            return Ok((page, self.decision));
        }
        let (job, mut location) = (self.job, None);
        match std::mem::replace(&mut self.kept, Kept::Lost) {
            Kept::Spilled(mut spill) => {
                let mut named = spill.name(job, &self.id).await;
                // A longer text than may be shown instead gets one more writer.
                if named.is_err() && spill.length > MAX_TAKEN_BACK {
                    named = spill.copy(job, &self.id).await;
                }
                match named {
                    Ok(named) => location = Some(named),
                    Err(error) => self.take_back(spill, &[], error).await?,
                }
            }
            kept => self.kept = kept,
        }
        let (outcome, shown) = match self.kept {
            Kept::Memory(bytes, _) => (
                Outcome::Kept(Reason::StoreFailed),
                text_of(&bytes).into_owned(),
            ),
            Kept::Spilled(_) | Kept::Lost => {
                let share = job.policy.preview_length.bytes_for(self.sketch.bytes());
                let preview = self.sketch.show(share, self.bytes);
                let mut draft = Draft::new(Kind::Truncated, self.bytes, &job.call.name, preview);
                draft.hint.lines = Some(self.sketch.lines());
                draft.hint.flags.not_utf8 = !self.decoder.is_utf8();
                draft.hint.flags.interrupted = is_interrupted && self.is_open;
                let outcome = if location.is_some() {
                    Outcome::Truncated
                } else {
                    Outcome::Lost
                };
                self.decision.locations.extend(location.clone());
                (outcome, job.session.hint(draft, location))
            }
        };
        let mut parts = self.others;
        parts.insert(self.at.unwrap_or_default(), shown.into());
        self.decision.outcome = outcome;
        self.decision.bytes.after = parts.iter().map(text_bytes).sum();
        Ok((parts, self.decision))
    }

    /// A page of stored content, if another reader returned this text from there.
    async fn page(&mut self) -> Option<Vec<Part>> {
        let Kept::Spilled(spill) = &mut self.kept else {
            return None;
        };
        if !self.others.is_empty() {
            return None;
        }
        let stored = self.job.named(self.bytes).await?;
        let result = spill.read().await.ok()?;
        let length = self.sketch.bytes();
        self.job
            .page(stored, &result, length, &mut self.decision)
            .await
    }
}

/// Bytes that were written to a store and have no name yet.
#[derive(Default)]
struct Spill {
    /// Opened for the first bytes.
    writer: Option<Box<dyn Writer>>,
    sha256: Sha256,
    length: u64,
}

impl Spill {
    async fn write(&mut self, job: Job<'_>, bytes: Bytes) -> Result<(), BackendError> {
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
    async fn read(&mut self) -> Result<Vec<u8>, BackendError> {
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
    async fn name(&mut self, job: Job<'_>, id: &Id) -> Result<Location, BackendError> {
        let digest = digest_from_sha256(&self.sha256.clone().finalize().into());
        let target = job.target(id, 1, &digest);
        target.name(job.backend, &mut **self.written()?).await
    }

    /// Copies all bytes to another writer, and names them there.
    async fn copy(&mut self, job: Job<'_>, id: &Id) -> Result<Location, BackendError> {
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
