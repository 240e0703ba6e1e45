//! Storing: content of one request, and the proof that the store overwrites nothing.

use std::ops::Range;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, PutMode};
use offcut::backend::{Backend, BackendError, Key, PutOutcome, Writer};

use crate::error::{Kind, Trouble};
use crate::objects::{Objects, PROBE, missing_bucket};

/// Content up to this many bytes is one object from one request; longer content is uploaded in
/// parts.
pub(crate) const MAX_SINGLE_PUT: u64 = 8 << 20;
/// The content of the object that proves that a store overwrites nothing.
const PROOF: &[u8] = b"Offcut found out with this that the store overwrites nothing\n";

/// Content to store, from memory or from a writer.
pub(crate) enum Content<'w> {
    Whole(Bytes),
    Written {
        writer: &'w mut dyn Writer,
        length: u64,
    },
}

impl Content<'_> {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Written { length, .. } => *length,
        }
    }

    /// Reads the bytes of `range`, which must lie within the content.
    pub(crate) async fn read(&mut self, range: Range<u64>) -> Result<Bytes, Trouble> {
        let length = range.end - range.start;
        let bytes = match self {
            // The length of content in memory fits a `usize`.
            Self::Whole(bytes) => bytes.slice(range.start as usize..range.end as usize),
            Self::Written { writer, .. } => {
                let read = writer.read(range).await;
                read.map_err(|error| Trouble::of_spool(&error))?
            }
        };
        if bytes.len() as u64 != length {
            return Err(Trouble::new(
                Kind::Spool,
                "the file is shorter than the bytes written to it",
            ));
        }
        Ok(bytes)
    }
}

impl Objects {
    /// Stores `content` under `key` if nothing is there. The key of long content must be derived
    /// from it.
    pub(crate) async fn store(
        &self,
        key: &Key,
        content: &mut Content<'_>,
    ) -> Result<PutOutcome, BackendError> {
        // If the spool can't be read, nothing is there.
        if self.spool.read(key, 0..0).await.is_ok()
            && let Ok(Some(put)) = self.compare(key, content).await
        {
            return Ok(put);
        }
        let put = if content.length() > MAX_SINGLE_PUT {
            self.upload(key, content).await
        } else {
            self.within_timeout(self.put_whole(key, content)).await
        };
        put.map_err(|trouble| self.failed("storing", key, trouble))
    }

    /// Stores `content` in one request if nothing is there.
    ///
    /// Unless the store answers "stored" or "refused", the content may be there all the same: the
    /// answer may be lost, or a proxy may have repeated the request and met the first one's object.
    /// So the object there is compared before anything is reported or retried. If the first request
    /// takes effect after that, the second meets its object.
    async fn put_whole(&self, key: &Key, content: &mut Content<'_>) -> Result<PutOutcome, Trouble> {
        let bytes = content.read(0..content.length()).await?;
        self.prove_create_only().await?;
        let mut attempts = 0;
        loop {
            let trouble = match self.put_once(&self.path(key), &bytes).await {
                Ok(()) => return Ok(PutOutcome::Stored),
                Err(trouble)
                    if trouble.kind == Kind::Exists || trouble.kind == Kind::Unreachable =>
                {
                    trouble
                }
                Err(trouble) => return Err(missing_bucket(trouble)),
            };
            if let Some(put) = self.compare(key, content).await? {
                return Ok(put);
            }
            if !self.retry.pause(&mut attempts).await {
                return match trouble.kind {
                    // Something is there that has no content: a directory, in stores that have
                    // them.
                    Kind::Exists => Ok(PutOutcome::Taken),
                    _ => Err(trouble),
                };
            }
        }
    }

    async fn put_once(&self, path: &Path, bytes: &Bytes) -> Result<(), Trouble> {
        let (bytes, mode) = (bytes.clone().into(), PutMode::Create.into());
        self.objects.put_opts(path, bytes, mode).await?;
        Ok(())
    }

    /// Returns the outcome of storing `content` under `key` if something is there; `None` if nothing
    /// is.
    pub(crate) async fn compare(
        &self,
        key: &Key,
        content: &mut Content<'_>,
    ) -> Result<Option<PutOutcome>, Trouble> {
        let length = content.length();
        let (mut at, mut oldest) = (0, None);
        loop {
            let block = at..length.min(at + MAX_SINGLE_PUT);
            let page = match self.page_of(key, block.clone()).await {
                // A spool that can't be read counts as empty.
                Err(trouble) if matches!(trouble.kind, Kind::NotFound | Kind::Spool) => {
                    return Ok(None);
                }
                page => page?,
            };
            if page.total != length || page.bytes != content.read(block.clone()).await? {
                return Ok(Some(PutOutcome::Taken));
            }
            // It may have been removed and stored again between two blocks.
            let stored_at = oldest.map_or(page.stored_at, |oldest| page.stored_at.min(oldest));
            oldest = Some(stored_at);
            at = block.end;
            if at >= length {
                return Ok(Some(PutOutcome::AlreadyThere { stored_at }));
            }
        }
    }

    /// Makes sure, once, that the store honours create-only puts. One that does not would silently
    /// overwrite.
    pub(crate) async fn prove_create_only(&self) -> Result<(), Trouble> {
        let proven = self.proven.get_or_try_init(|| self.try_to_overwrite());
        proven.await.copied()
    }

    async fn try_to_overwrite(&self) -> Result<(), Trouble> {
        let (path, proof) = (self.path_of(PROBE), Bytes::from_static(PROOF));
        let (mut accepted, mut attempts) = (0, 0);
        while accepted < 2 {
            match self.put_once(&path, &proof).await {
                Ok(()) => accepted += 1,
                Err(trouble) if trouble.kind == Kind::Exists => return Ok(()),
                Err(trouble)
                    if trouble.kind == Kind::Unreachable
                        && self.retry.pause(&mut attempts).await => {}
                Err(trouble) => return Err(missing_bucket(trouble)),
            }
        }
        let cause = "the store accepted the same object twice";
        Err(Trouble::new(Kind::Overwrites, cause))
    }
}
