//! Content for a file, piece by piece.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use super::Fs;
use super::error::{Doing, blocking, failed};
use super::stage::Stage;
use crate::backend::{Backend, BackendError, ErrorKind, Key, Location, Put, Writer};

/// How many bytes are gathered before a blocking thread is asked to write them: each time costs two changes of threads.
const BUFFER: usize = 1024 * 1024;
/// Shorter chunks are copied together.
const SMALL: usize = 16 * 1024;

/// Hands its stage to each blocking call and takes it back after. So the stage is owned by one of the two at every moment,
/// and whoever drops it removes the file: the writer, or a call that nobody waits for any more.
pub(super) struct FsWriter {
    /// `None` once the content has its name, or after a dropped call.
    stage: Option<Stage>,
    /// How many bytes are in the file for sure.
    on_disk: u64,
    /// What comes behind them.
    pending: Vec<Bytes>,
    small: BytesMut,
    buffered: usize,
    /// Whether writing failed: nothing can be appended any more, but what is there can be read.
    is_broken: bool,
}

impl FsWriter {
    pub(super) fn open(store: &Fs) -> Result<Self, BackendError> {
        let stage = Stage::create(store);
        let stage = stage.map_err(|source| failed(source, Doing::Stage, &Location::new(&*store.shown)))?;
        Ok(Self {
            stage: Some(stage),
            on_disk: 0,
            pending: Vec::new(),
            small: BytesMut::new(),
            buffered: 0,
            is_broken: false,
        })
    }

    fn take(&mut self) -> Result<Stage, BackendError> {
        self.stage.take().ok_or_else(|| {
            let why = "this writer's content is stored already, or was given up after an error: open another writer";
            BackendError::new(ErrorKind::Other, why)
        })
    }

    fn append(&mut self, chunk: Bytes) {
        self.buffered += chunk.len();
        if chunk.len() < SMALL {
            self.small.extend_from_slice(&chunk);
        } else {
            self.gather();
            self.pending.push(chunk);
        }
    }

    /// All that is buffered, in order.
    fn gather(&mut self) -> &[Bytes] {
        if !self.small.is_empty() {
            self.pending.push(self.small.split().freeze());
        }
        &self.pending
    }

    /// Writes what is buffered to the file.
    async fn flush(&mut self) -> Result<(), BackendError> {
        if self.buffered == 0 && self.stage.is_some() && !self.is_broken {
            return Ok(());
        }
        let mut stage = self.take()?;
        if self.is_broken {
            self.stage = Some(stage);
            return Err(BackendError::new(ErrorKind::Other, "writing failed before: open another writer"));
        }
        let pending = self.gather().to_vec();
        let written = blocking(move || {
            let written = pending.iter().try_for_each(|bytes| stage.write(bytes));
            let failed = |source| failed(source, Doing::Stage, &Location::new(&*stage.store().shown));
            Ok((written.map_err(failed), stage))
        });
        let (written, stage) = written.await?;
        self.stage = Some(stage);
        self.is_broken = written.is_err();
        written?;
        self.pending.clear();
        self.on_disk += self.buffered as u64;
        self.buffered = 0;
        Ok(())
    }

    /// Takes back the last `length` bytes that were appended.
    fn take_back(&mut self, length: usize) {
        self.gather();
        self.buffered -= length;
        if let Some(last) = self.pending.pop() {
            // Small chunks are gathered in one.
            self.pending.push(last.slice(..last.len() - length));
        }
    }
}

impl fmt::Debug for FsWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FsWriter")
            .field("stage", &self.stage)
            .field("on_disk", &self.on_disk)
            .field("buffered", &self.buffered)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Writer for FsWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        let length = chunk.len();
        if self.stage.is_some() && !self.is_broken {
            self.append(chunk);
            if self.buffered < BUFFER {
                return Ok(());
            }
        }
        let was_broken = self.is_broken;
        let flushed = self.flush().await;
        if flushed.is_err() && self.is_broken && !was_broken {
            self.take_back(length);
        }
        flushed
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        let total = self.on_disk + self.buffered as u64;
        let end = range.end.min(total);
        let (start, from_disk) = (range.start.min(end), range.start.min(end)..end.min(self.on_disk));
        let mut bytes = Vec::new();
        if !from_disk.is_empty() {
            let mut stage = self.take()?;
            let read = blocking(move || {
                let read = stage.read(&from_disk);
                let failed = |source| failed(source, Doing::Stage, &Location::new(&*stage.store().shown));
                Ok((read.map_err(failed), stage))
            });
            let (read, stage) = read.await?;
            self.stage = Some(stage);
            bytes = read?;
        } else if self.stage.is_none() {
            self.take()?;
        }
        let mut at = self.on_disk;
        for piece in self.gather() {
            let within =
                |place: u64| usize::try_from(place.saturating_sub(at)).map_or(piece.len(), |p| p.min(piece.len()));
            bytes.extend_from_slice(&piece[within(start)..within(end)]);
            at += piece.len() as u64;
        }
        Ok(bytes.into())
    }

    async fn finish(&mut self, key: &Key) -> Result<Put, BackendError> {
        self.flush().await?;
        let mut stage = self.take()?;
        let key = key.clone();
        let named = blocking(move || {
            let put = stage.name(&key).map_err(|source| failed(source, Doing::Store, &stage.store().locate(&key)));
            // Kept to be read or for another name, or dropped here, on the thread that may block.
            let is_stored = matches!(put, Ok(Put::Stored | Put::AlreadyThere));
            Ok((put, (!is_stored).then_some(stage)))
        });
        let (put, stage) = named.await?;
        self.stage = stage;
        put
    }
}
