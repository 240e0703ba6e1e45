//! A writer for files.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Mutex;

use super::error::{Doing, blocking, failed};
use super::stage::Stage;
use super::store::Fs;
use crate::backend::range::{indexes_within, within};
use crate::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome, Writer};

/// Number of bytes to collect before a blocking thread writes them, since each write costs two
/// thread switches.
const BUFFER: usize = 1024 * 1024;

/// A writer shared with the blocking call that works for it, also if that is no longer awaited.
pub(super) struct FsWriter {
    buffered: Arc<Mutex<Buffered>>,
    /// True during a call to `write`. If a call finds it true, the previous call was dropped and
    /// its effect is unknown.
    is_writing: bool,
}

struct Buffered {
    /// `None` once the content is stored.
    stage: Option<Stage>,
    /// Number of bytes known to be in the file.
    on_disk: u64,
    /// The bytes after those.
    pending: Vec<u8>,
    /// True after a failed write: no more can be appended, but existing bytes can be read.
    is_broken: bool,
}

impl Buffered {
    fn stage(&mut self) -> Result<&mut Stage, BackendError> {
        let why = "this writer's content is stored already: open another writer";
        self.stage
            .as_mut()
            .ok_or_else(|| BackendError::new(ErrorKind::Other, why))
    }

    fn expect_whole(&mut self) -> Result<(), BackendError> {
        if self.is_broken {
            let why = "an earlier write failed: open another writer";
            return Err(BackendError::new(ErrorKind::Other, why));
        }
        self.stage().map(drop)
    }

    /// Writes all pending bytes and `chunk` to the file.
    fn write(&mut self, chunk: &[u8]) -> Result<(), BackendError> {
        self.expect_whole()?;
        let pending = std::mem::take(&mut self.pending);
        let stage = self.stage()?;
        let written = stage.write(&pending).and_then(|()| stage.write(chunk));
        let written = written.map_err(|source| could_not_write(source, stage));
        if written.is_ok() {
            self.on_disk += (pending.len() + chunk.len()) as u64;
        } else {
            (self.pending, self.is_broken) = (pending, true);
        }
        written
    }

    fn read(&mut self, range: &Range<u64>) -> Result<Bytes, BackendError> {
        let on_disk = self.on_disk;
        let from_disk = within(range, on_disk);
        let stage = self.stage()?;
        let mut bytes = stage
            .read(&from_disk)
            .map_err(|source| could_not_write(source, stage))?;
        let pending = range.start.saturating_sub(on_disk)..range.end.saturating_sub(on_disk);
        bytes.extend_from_slice(&self.pending[indexes_within(&pending, self.pending.len())]);
        Ok(bytes.into())
    }

    fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        self.write(&[])?;
        let stage = self.stage()?;
        let put = stage.name(key);
        let put = put.map_err(|source| failed(source, Doing::Store, &stage.store().locate(key)));
        if matches!(put, Ok(PutOutcome::Stored)) {
            // Removes the staging file.
            self.stage = None;
        }
        put
    }
}

fn could_not_write(source: io::Error, stage: &Stage) -> BackendError {
    failed(source, Doing::Stage, &stage.store().place())
}

impl FsWriter {
    pub(super) fn open(store: &Fs) -> Result<Self, BackendError> {
        let stage = Stage::create(store).and_then(|stage| stage.try_linking().map(|()| stage));
        let stage = stage.map_err(|source| failed(source, Doing::Stage, &store.place()))?;
        Ok(Self {
            buffered: Arc::new(Mutex::new(Buffered {
                stage: Some(stage),
                on_disk: 0,
                pending: Vec::new(),
                is_broken: false,
            })),
            is_writing: false,
        })
    }

    /// Lets a blocking thread work on the file.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Buffered) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let buffered = Arc::clone(&self.buffered);
        blocking(move || work(&mut buffered.blocking_lock())).await
    }

    fn expect_no_cancelled_write(&self) -> Result<(), BackendError> {
        if self.is_writing {
            let why = "an earlier write was cancelled: open another writer";
            return Err(BackendError::new(ErrorKind::Other, why));
        }
        Ok(())
    }
}

impl fmt::Debug for FsWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FsWriter").finish_non_exhaustive()
    }
}

#[async_trait]
impl Writer for FsWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        self.expect_no_cancelled_write()?;
        self.is_writing = true;
        let mut buffered = self.buffered.lock().await;
        let written = if buffered.pending.len() + chunk.len() < BUFFER {
            buffered
                .expect_whole()
                .map(|()| buffered.pending.extend_from_slice(&chunk))
        } else {
            drop(buffered);
            self.blocking(move |buffered| buffered.write(&chunk)).await
        };
        self.is_writing = false;
        written
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        self.blocking(move |buffered| buffered.read(&range)).await
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        self.expect_no_cancelled_write()?;
        let key = key.clone();
        self.blocking(move |buffered| buffered.finish(&key)).await
    }
}
