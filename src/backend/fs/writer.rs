//! A writer for files.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::error::failed;
use super::stage::Stage;
use super::store::Fs;
use crate::backend::memory::finished;
use crate::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome, Writer};

/// A writer shared with the blocking call that works for it, also if that is no longer awaited.
#[derive(Debug)]
pub(super) struct FsWriter {
    store: Fs,
    /// `None` once the content is stored.
    stage: Arc<Mutex<Option<Stage>>>,
    /// False during a call that writes, and after one that failed or was dropped: nothing can be appended or
    /// named, but existing bytes can be read.
    is_whole: bool,
}

impl FsWriter {
    pub(super) fn open(store: &Fs) -> Result<Self, BackendError> {
        let stage = Stage::create(store).and_then(|stage| stage.try_linking().map(|()| stage));
        Ok(Self {
            store: store.clone(),
            stage: Arc::new(Mutex::new(Some(could_not_write(stage, store)?))),
            is_whole: true,
        })
    }

    /// Lets a blocking thread work on the file.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Fs, &mut Option<Stage>) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let stage = Arc::clone(&self.stage);
        let work = move |store: &Fs| {
            let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
            work(store, &mut stage)
        };
        self.store.blocking(work).await
    }

    /// Lets a blocking thread change the file. If that fails or is dropped, it is the last change.
    async fn changing<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Fs, &mut Option<Stage>) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        if !std::mem::replace(&mut self.is_whole, false) {
            let why = "an earlier call failed or was cancelled: open another writer";
            return Err(BackendError::new(ErrorKind::Other, why));
        }
        let done = self.blocking(work).await;
        self.is_whole = done.is_ok();
        done
    }
}

fn could_not_write<T>(result: io::Result<T>, store: &Fs) -> Result<T, BackendError> {
    result.map_err(|source| failed(source, "writing a staging file in", &store.place()))
}

#[async_trait]
impl Writer for FsWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        let write = move |store: &Fs, stage: &mut Option<Stage>| {
            could_not_write(stage.as_mut().ok_or_else(finished)?.write(&chunk), store)
        };
        self.changing(write).await
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        let read = move |store: &Fs, stage: &mut Option<Stage>| {
            could_not_write(stage.as_mut().ok_or_else(finished)?.read(&range), store)
        };
        self.blocking(read).await.map(Bytes::from)
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        let key = key.clone();
        let finish = move |store: &Fs, stage: &mut Option<Stage>| {
            let put = stage.as_mut().ok_or_else(finished)?.name(&key);
            if let Ok(PutOutcome::Stored) = put {
                // Removes the staging file.
                *stage = None;
            }
            put.map_err(|source| failed(source, "storing", &store.locate(&key)))
        };
        self.changing(finish).await
    }
}
