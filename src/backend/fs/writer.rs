//! A writer for files.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Mutex;

use super::error::{BlockingThreads, failed};
use super::stage::Stage;
use super::store::Fs;
use crate::backend::memory::finished;
use crate::backend::range::{indexes_within, within};
use crate::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome, Writer};

/// Number of bytes to collect before a blocking thread writes them, since each write costs two
/// thread switches.
const BUFFER: usize = 1024 * 1024;

/// A writer shared with the blocking call that works for it, also if that is no longer awaited.
pub(super) struct FsWriter {
    buffered: Arc<Mutex<Buffered>>,
    /// False during a call that writes, and after one that failed or was dropped: nothing can be appended or
    /// named, but existing bytes can be read.
    is_whole: bool,
    threads: BlockingThreads,
}

struct Buffered {
    /// `None` once the content is stored.
    stage: Option<Stage>,
    /// Number of bytes known to be in the file.
    on_disk: u64,
    /// The bytes after those.
    pending: Vec<u8>,
}

impl Buffered {
    fn stage(&mut self) -> Result<&mut Stage, BackendError> {
        self.stage.as_mut().ok_or_else(finished)
    }

    /// Writes all pending bytes and `chunk` to the file.
    fn write(&mut self, chunk: &[u8]) -> Result<(), BackendError> {
        let pending = std::mem::take(&mut self.pending);
        let stage = self.stage()?;
        let written = stage.write(&pending).and_then(|()| stage.write(chunk));
        let written = written.map_err(|source| could_not_write(source, stage));
        if written.is_ok() {
            self.on_disk += (pending.len() + chunk.len()) as u64;
        } else {
            self.pending = pending;
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
        let put = put.map_err(|source| failed(source, "storing", &stage.store.locate(key)));
        if matches!(put, Ok(PutOutcome::Stored)) {
            // Removes the staging file.
            self.stage = None;
        }
        put
    }
}

fn could_not_write(source: io::Error, stage: &Stage) -> BackendError {
    failed(source, "writing a staging file in", &stage.store.place())
}

impl FsWriter {
    pub(super) fn open(store: &Fs) -> Result<Self, BackendError> {
        let stage = Stage::create(store).and_then(|stage| stage.try_linking().map(|()| stage));
        let stage =
            stage.map_err(|source| failed(source, "writing a staging file in", &store.place()))?;
        Ok(Self {
            buffered: Arc::new(Mutex::new(Buffered {
                stage: Some(stage),
                on_disk: 0,
                pending: Vec::new(),
            })),
            is_whole: true,
            threads: store.threads.clone(),
        })
    }

    /// Lets a blocking thread work on the file.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Buffered) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let buffered = Arc::clone(&self.buffered);
        let work = move || work(&mut buffered.blocking_lock());
        self.threads.run(work).await
    }

    /// Notes that nothing can be appended any more if the call that begins here fails or is dropped.
    fn begin(&mut self) -> Result<(), BackendError> {
        if std::mem::replace(&mut self.is_whole, false) {
            return Ok(());
        }
        let why = "an earlier call failed or was cancelled: open another writer";
        Err(BackendError::new(ErrorKind::Other, why))
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
        self.begin()?;
        let mut buffered = self.buffered.lock().await;
        let written = if buffered.pending.len() + chunk.len() < BUFFER {
            let written = buffered.stage().map(drop);
            buffered.pending.extend_from_slice(&chunk);
            written
        } else {
            drop(buffered);
            self.blocking(move |buffered| buffered.write(&chunk)).await
        };
        self.is_whole = written.is_ok();
        written
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        self.blocking(move |buffered| buffered.read(&range)).await
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        self.begin()?;
        let key = key.clone();
        let put = self.blocking(move |buffered| buffered.finish(&key)).await;
        self.is_whole = put.is_ok();
        put
    }
}
