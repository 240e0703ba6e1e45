//! Content for a file, piece by piece.

use std::fmt;
use std::io;
use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use tokio::task::JoinHandle;

use super::Fs;
use super::error::{Doing, blocking, failed, runtime};
use super::stage::Stage;
use crate::backend::{
    Backend, BackendError, ErrorKind, Key, Location, PutOutcome, Writer, indexes_within, within,
};

/// How many bytes are gathered before a blocking thread is asked to write them: each time costs two
/// changes of threads.
const BUFFER: usize = 1024 * 1024;
/// Shorter chunks are copied together.
const SMALL: usize = 16 * 1024;

/// While one buffer is on its way to the file, the next is filled. The stage is owned by one of the
/// two, the writer or a blocking call, at every moment, and whoever drops it removes the file: also
/// a call that nobody waits for any more.
pub(super) struct FsWriter {
    stage: Place,
    /// How many bytes are in the file for sure.
    on_disk: u64,
    /// What is on its way behind them; kept until it has arrived.
    in_flight: Buffer,
    /// What comes behind that.
    next: Buffer,
    /// Whether writing failed: nothing can be appended any more, but what is there can be read.
    is_broken: bool,
    /// A call to write is under way. Where one is found so, the last one was dropped, and nobody
    /// knows what it has done.
    is_writing: bool,
}

enum Place {
    Here(Stage),
    /// A blocking call has it, and writes.
    Writing(JoinHandle<(io::Result<()>, Stage)>),
    /// The content has its name, or a call with it was dropped.
    Gone,
}

/// Bytes in memory, in order.
#[derive(Default)]
struct Buffer {
    pieces: Vec<Bytes>,
    /// Short chunks, behind the pieces.
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

    /// Takes back the last `length` bytes that were appended.
    fn take_back(&mut self, length: usize) {
        self.gather();
        self.length -= length;
        if let Some(last) = self.pieces.pop() {
            // Small chunks are gathered in one.
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

    /// Waits until nothing is on its way. Where the future is dropped, that goes on.
    async fn settle(&mut self) -> Result<(), BackendError> {
        let Place::Writing(call) = &mut self.stage else {
            return Ok(());
        };
        let ended = call.await;
        self.stage = Place::Gone;
        let (written, stage) = ended.map_err(|source| {
            BackendError::new(
                ErrorKind::Other,
                "the runtime ended before the store had answered",
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

    /// The stage, once nothing is on its way.
    fn take(&mut self) -> Result<Stage, BackendError> {
        match std::mem::replace(&mut self.stage, Place::Gone) {
            Place::Here(stage) => Ok(stage),
            other => {
                self.stage = other;
                let why = "this writer's content is stored already, or was given up after an error: open another writer";
                Err(BackendError::new(ErrorKind::Other, why))
            }
        }
    }

    /// The stage, if something can still be appended.
    fn take_whole(&mut self) -> Result<Stage, BackendError> {
        let stage = self.take()?;
        let why = match () {
            () if self.is_broken => "writing failed before: open another writer",
            () if self.is_writing => "a call to write was dropped before: open another writer",
            () => return Ok(stage),
        };
        self.stage = Place::Here(stage);
        Err(BackendError::new(ErrorKind::Other, why))
    }

    /// Sends what is buffered to the file. Nothing else may be on its way.
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
        // What failed to arrive is in memory.
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
            // Kept to be read or for another name, or dropped here, on the thread that may block.
            let is_stored = matches!(put, Ok(PutOutcome::Stored | PutOutcome::AlreadyThere));
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
