//! A writer for files.

use std::fmt;
use std::io;
use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use tokio::task::JoinHandle;

use super::Fs;
use super::error::{Doing, blocking, failed, runtime};
use super::stage::Stage;
use crate::backend::range::{indexes_within, within};
use crate::backend::{Backend, BackendError, ErrorKind, Key, Location, PutOutcome, Writer};

/// Number of bytes to collect before a blocking thread writes them, since each write costs two
/// thread switches.
const BUFFER: usize = 1024 * 1024;
/// Chunks shorter than this, in bytes, are copied into one buffer.
const SMALL: usize = 16 * 1024;

/// Fills one buffer while the other is written to the file. At any time either the writer or a
/// blocking call owns the stage, and its owner removes the file when dropped. That holds even for a
/// call that is no longer awaited.
pub(super) struct FsWriter {
    stage: Place,
    /// Number of bytes known to be in the file.
    on_disk: u64,
    /// The bytes after those, being written; kept until the write succeeds.
    in_flight: Buffer,
    /// The bytes after `in_flight`.
    next: Buffer,
    /// True after a failed write: no more can be appended, but existing bytes can be read.
    is_broken: bool,
    /// True during a call to `write`. If a call finds it true, the previous call was dropped and
    /// its effect is unknown.
    is_writing: bool,
}

enum Place {
    Here(Stage),
    /// A blocking call owns the stage and writes.
    Writing(JoinHandle<(io::Result<()>, Stage)>),
    /// The content is stored, or a call that owned the stage was dropped.
    Gone,
}

/// Bytes in memory, in order.
#[derive(Default)]
struct Buffer {
    pieces: Vec<Bytes>,
    /// Short chunks that follow `pieces`.
    small: BytesMut,
    length: usize,
}

impl Buffer {
    fn append(&mut self, chunk: Bytes) {
        self.length += chunk.len();
        if chunk.len() < SMALL {
            self.small.extend_from_slice(&chunk);
        } else {
            self.gather();
            self.pieces.push(chunk);
        }
    }

    fn gather(&mut self) -> &[Bytes] {
        if !self.small.is_empty() {
            self.pieces.push(self.small.split().freeze());
        }
        &self.pieces
    }

    /// Removes the last `length` bytes appended.
    fn take_back(&mut self, length: usize) {
        self.gather();
        self.length -= length;
        if let Some(last) = self.pieces.pop() {
            // Small chunks were merged into one piece.
            self.pieces.push(last.slice(..last.len() - length));
        }
    }
}

impl FsWriter {
    pub(super) fn open(store: &Fs) -> Result<Self, BackendError> {
        let stage = Stage::create(store);
        let stage =
            stage.map_err(|source| failed(source, Doing::Stage, &Location::new(&*store.shown)))?;
        let (in_flight, next) = (Buffer::default(), Buffer::default());
        Ok(Self {
            stage: Place::Here(stage),
            on_disk: 0,
            in_flight,
            next,
            is_broken: false,
            is_writing: false,
        })
    }

    /// Waits for the write in flight. If the future is dropped, the write continues.
    async fn settle(&mut self) -> Result<(), BackendError> {
        let Place::Writing(call) = &mut self.stage else {
            return Ok(());
        };
        let ended = call.await;
        self.stage = Place::Gone;
        let (written, stage) = ended.map_err(|source| {
            BackendError::new(
                ErrorKind::Other,
                "the runtime shut down before the store answered",
            )
            .with_source(source)
        })?;
        let written = written.map_err(|source| could_not_write(source, &stage));
        self.stage = Place::Here(stage);
        match written {
            Ok(()) => {
                self.on_disk += self.in_flight.length as u64;
                self.in_flight = Buffer::default();
                Ok(())
            }
            Err(error) => {
                self.is_broken = true;
                Err(error)
            }
        }
    }

    /// Takes the stage; fails while a write is in flight.
    fn take(&mut self) -> Result<Stage, BackendError> {
        match std::mem::replace(&mut self.stage, Place::Gone) {
            Place::Here(stage) => Ok(stage),
            other => {
                self.stage = other;
                let why = "this writer's content is stored already, or was discarded after an error: open another writer";
                Err(BackendError::new(ErrorKind::Other, why))
            }
        }
    }

    /// Takes the stage, if more can be appended.
    fn take_whole(&mut self) -> Result<Stage, BackendError> {
        let stage = self.take()?;
        let why = match () {
            () if self.is_broken => "an earlier write failed: open another writer",
            () if self.is_writing => "an earlier write was cancelled: open another writer",
            () => return Ok(stage),
        };
        self.stage = Place::Here(stage);
        Err(BackendError::new(ErrorKind::Other, why))
    }

    /// Sends the buffer to the file. No other write may be in flight.
    fn send(&mut self) -> Result<(), BackendError> {
        let runtime = runtime()?;
        let mut stage = self.take_whole()?;
        self.in_flight = std::mem::take(&mut self.next);
        let pieces = self.in_flight.gather().to_vec();
        self.stage = Place::Writing(runtime.spawn_blocking(move || {
            let written = pieces.iter().try_for_each(|bytes| stage.write(bytes));
            (written, stage)
        }));
        Ok(())
    }
}

fn could_not_write(source: io::Error, stage: &Stage) -> BackendError {
    failed(source, Doing::Stage, &Location::new(&*stage.store().shown))
}

impl fmt::Debug for FsWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FsWriter")
            .field("on_disk", &self.on_disk)
            .field("in_flight", &self.in_flight.length)
            .field("next", &self.next.length)
            .field("is_broken", &self.is_broken)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Writer for FsWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        if self.is_broken || self.is_writing || matches!(self.stage, Place::Gone) {
            let _ = self.settle().await;
            return self.take_whole().map(drop);
        }
        let length = chunk.len();
        self.next.append(chunk);
        if self.next.length < BUFFER {
            return Ok(());
        }
        self.is_writing = true;
        let settled = self.settle().await;
        self.is_writing = false;
        let sent = settled.and_then(|()| self.send());
        if sent.is_err() {
            self.next.take_back(length);
        }
        sent
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        // On failure the bytes are still in memory.
        let _ = self.settle().await;
        let total = self.on_disk + (self.in_flight.length + self.next.length) as u64;
        let range = within(&range, total);
        let from_disk = within(&range, self.on_disk);
        let mut stage = self.take()?;
        let mut bytes = Vec::new();
        if from_disk.is_empty() {
            self.stage = Place::Here(stage);
        } else {
            let read = blocking(move || {
                let read = stage
                    .read(&from_disk)
                    .map_err(|source| could_not_write(source, &stage));
                Ok((read, stage))
            });
            let (read, stage) = read.await?;
            self.stage = Place::Here(stage);
            bytes = read?;
        }
        let mut at = self.on_disk;
        for buffer in [&mut self.in_flight, &mut self.next] {
            for piece in buffer.gather() {
                let wanted = range.start.saturating_sub(at)..range.end.saturating_sub(at);
                bytes.extend_from_slice(&piece[indexes_within(&wanted, piece.len())]);
                at += piece.len() as u64;
            }
        }
        Ok(bytes.into())
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        self.settle().await?;
        let mut stage = self.take_whole()?;
        let (rest, key) = (self.next.gather().to_vec(), key.clone());
        let named = blocking(move || {
            let written = rest.iter().try_for_each(|bytes| stage.write(bytes));
            if let Err(source) = written {
                return Ok((Err(could_not_write(source, &stage)), Some(stage), false));
            }
            let put = stage
                .name(&key)
                .map_err(|source| failed(source, Doing::Store, &stage.store().locate(&key)));
            // Keep the stage for reading or another name, or drop it here, on a thread that may
            // block.
            let is_stored = matches!(put, Ok(PutOutcome::Stored));
            Ok((put, (!is_stored).then_some(stage), true))
        });
        let (put, stage, is_written) = named.await?;
        self.stage = stage.map_or(Place::Gone, Place::Here);
        self.is_broken = !is_written;
        if is_written {
            self.on_disk += self.next.length as u64;
            self.next = Buffer::default();
        }
        put
    }
}
