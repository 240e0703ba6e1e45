//! Storing: content of one request, and the proof that the store overwrites nothing.

use bytes::Bytes;
use object_store::PutMode;
use object_store::path::Path;
use offcut::backend::{BackendError, Key, PutOutcome};

use crate::content::Content;
use crate::error::{Kind, Trouble};
use crate::objects::{Objects, missing_bucket};

/// The content of the object that proves that a store overwrites nothing.
const PROOF: &[u8] = b"Offcut found out with this that the store overwrites nothing\n";

impl Objects {
    /// Stores `content` under `key` if nothing is there. The key of long content must be derived
    /// from it.
    pub(crate) async fn store(
        &self,
        key: &Key,
        content: &mut Content<'_>,
    ) -> Result<PutOutcome, BackendError> {
        if let Some(put) = self.compare_spooled(key, content).await {
            return Ok(put);
        }
        let path = self.path(key);
        let put = if content.is_long() {
            self.upload(&path, content).await
        } else {
            self.within_timeout(self.put_whole(&path, content)).await
        };
        put.map_err(|trouble| self.failed("storing", key, trouble))
    }

    /// Stores `content` in one request if nothing is there.
    ///
    /// Unless the store answers "stored" or "refused", the content may be there all the same: the
    /// answer may be lost, or a proxy may have repeated the request and met the first one's object.
    /// So the object there is compared before anything is reported or retried. If the first request
    /// takes effect after that, the second meets its object.
    async fn put_whole(
        &self,
        path: &Path,
        content: &mut Content<'_>,
    ) -> Result<PutOutcome, Trouble> {
        let bytes = content.read(0..content.length()).await?;
        self.prove_create_only().await?;
        let mut pauses = self.retry.pauses();
        loop {
            let trouble = match self.put_once(path, &bytes).await {
                Ok(()) => return Ok(PutOutcome::Stored),
                Err(trouble) if trouble.kind == Kind::Exists || trouble.kind.is_passing() => {
                    trouble
                }
                Err(trouble) => return Err(missing_bucket(trouble)),
            };
            if let Some(put) = self.compare(path, content).await? {
                return Ok(put);
            }
            if !pauses.wait().await {
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
        let put = self.objects.put_opts(path, bytes, mode);
        self.attempt(put).await.map(drop)
    }

    /// Makes sure, once, that the store honours create-only puts. One that does not would silently
    /// overwrite.
    pub(crate) async fn prove_create_only(&self) -> Result<(), Trouble> {
        let proven = self.proven.get_or_try_init(|| self.try_to_overwrite());
        proven.await.copied()
    }

    async fn try_to_overwrite(&self) -> Result<(), Trouble> {
        let (path, proof) = (self.probe(), Bytes::from_static(PROOF));
        for _ in 0..2 {
            let put = self.retried(|| self.put_once(&path, &proof));
            match put.await {
                Err(trouble) if trouble.kind == Kind::Exists => return Ok(()),
                put => put.map_err(missing_bucket)?,
            }
        }
        let cause = "the store accepted the same object twice";
        Err(Trouble::new(Kind::Overwrites, cause))
    }
}
