//! Content for a file, piece by piece.

use std::ops::Range;
use std::{fmt, mem};

use async_trait::async_trait;
use bytes::Bytes;

use super::Fs;
use super::error::{Doing, blocking, failed};
use super::stage::Stage;
use crate::backend::{Backend, BackendError, ErrorKind, Key, Location, Put, Writer};

/// How many bytes are gathered before a blocking thread is asked to write them.
const BUFFER: usize = 64 * 1024;

/// Hands its stage to each blocking call and takes it back after. So the stage is owned by one of the two at every moment,
/// and whoever drops it removes the file: the writer, or a call that nobody waits for any more.
pub(super) struct FsWriter {
    /// `None` once the content has its name, or after an error or a dropped call.
    stage: Option<Stage>,
    buffer: Vec<u8>,
}

impl FsWriter {
    pub(super) fn open(store: &Fs) -> Result<Self, BackendError> {
        let stage = Stage::create(store);
        let stage = stage.map_err(|source| failed(source, Doing::Stage, &Location::new(&*store.shown)))?;
        Ok(Self { stage: Some(stage), buffer: Vec::new() })
    }

    fn take(&mut self) -> Result<(Stage, Vec<u8>), BackendError> {
        let stage = self.stage.take().ok_or_else(|| {
            let why = "this writer's content is stored already, or was given up after an error: open another writer";
            BackendError::new(ErrorKind::Other, why)
        })?;
        Ok((stage, mem::take(&mut self.buffer)))
    }
}

impl fmt::Debug for FsWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FsWriter").field("stage", &self.stage).field("buffered", &self.buffer.len()).finish()
    }
}

#[async_trait]
impl Writer for FsWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        if self.stage.is_some() && self.buffer.len() + chunk.len() < BUFFER {
            self.buffer.extend_from_slice(&chunk);
            return Ok(());
        }
        let (mut stage, buffer) = self.take()?;
        let stage = blocking(move || {
            let written = stage.write(&buffer).and_then(|()| stage.write(&chunk));
            written.map_err(|source| failed(source, Doing::Stage, &Location::new(&*stage.store().shown)))?;
            Ok(stage)
        });
        self.stage = Some(stage.await?);
        Ok(())
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        let (mut stage, buffer) = self.take()?;
        let read = blocking(move || {
            let read = stage.write(&buffer).and_then(|()| stage.read(&range));
            let bytes = read.map_err(|source| failed(source, Doing::Stage, &Location::new(&*stage.store().shown)))?;
            Ok((bytes, stage))
        });
        let (bytes, stage) = read.await?;
        self.stage = Some(stage);
        Ok(bytes.into())
    }

    async fn finish(&mut self, key: &Key) -> Result<Put, BackendError> {
        let (mut stage, buffer) = self.take()?;
        let key = key.clone();
        let named = blocking(move || {
            // Half a buffer may have been written: nobody knows what such a file holds.
            if let Err(source) = stage.write(&buffer) {
                return Err(failed(source, Doing::Stage, &Location::new(&*stage.store().shown)));
            }
            let named = stage.name(&key);
            let put = named.map_err(|source| failed(source, Doing::Store, &stage.store().locate(&key)));
            // Kept to be read or for another name, or dropped here, on the thread that may block.
            let is_stored = matches!(put, Ok(Put::Stored | Put::AlreadyThere));
            Ok((put, (!is_stored).then_some(stage)))
        });
        let (put, stage) = named.await?;
        self.stage = stage;
        put
    }
}
