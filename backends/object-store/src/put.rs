//! Content of one request, and the proof that the store overwrites nothing.

use bytes::Bytes;
use object_store::PutMode;
use offcut::backend::{Key, PutOutcome};

use crate::content::Content;
use crate::error::{Kind, Trouble};
use crate::objects::{Objects, missing_bucket};

/// The content of the object that proves that a store overwrites nothing.
const PROOF: &[u8] = b"Offcut found out with this that the store overwrites nothing\n";

impl Objects {
    /// Stores `content` under `key` if nothing is there.
    ///
    /// Unless the store answers "stored" or "refused", the content may be there all the same: the
    /// answer may be lost, or a proxy may have repeated the request and met the first one's object.
    /// So the object there is compared before anything is reported or retried. If the first request
    /// takes effect after that, the second meets its object.
    pub(crate) async fn put_whole(
        &self,
        key: &Key,
        content: &Bytes,
    ) -> Result<PutOutcome, Trouble> {
        self.prove_create_only().await?;
        let path = self.path(key);
        let mut pauses = self.pauses();
        loop {
            let put =
                self.inner()
                    .store
                    .put_opts(&path, content.clone().into(), PutMode::Create.into());
            let trouble = match self.attempt(put).await {
                Ok(_) => return Ok(PutOutcome::Stored),
                Err(trouble) if trouble.kind == Kind::Exists || trouble.kind.is_passing() => {
                    trouble
                }
                Err(trouble) => return Err(missing_bucket(trouble)),
            };
            if let Some(put) = self
                .compare(&path, &mut Content::Whole(content.clone()))
                .await?
            {
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

    /// Makes sure, once, that the store honours create-only puts. One that does not would silently
    /// overwrite.
    pub(crate) async fn prove_create_only(&self) -> Result<(), Trouble> {
        self.inner()
            .proven
            .get_or_try_init(|| self.try_to_overwrite())
            .await
            .copied()
    }

    async fn try_to_overwrite(&self) -> Result<(), Trouble> {
        let path = self.probe();
        let mut pauses = self.pauses();
        let mut is_stored = false;
        loop {
            let put = self.inner().store.put_opts(
                &path,
                Bytes::from_static(PROOF).into(),
                PutMode::Create.into(),
            );
            match self.attempt(put).await {
                Err(trouble) if trouble.kind == Kind::Exists => return Ok(()),
                Ok(_) if is_stored => {
                    return Err(Trouble::new(
                        Kind::Overwrites,
                        "the store accepted the same object twice",
                    ));
                }
                Ok(_) => is_stored = true,
                Err(trouble) if trouble.kind.is_passing() && pauses.wait().await => {}
                Err(trouble) => return Err(missing_bucket(trouble)),
            }
        }
    }
}
