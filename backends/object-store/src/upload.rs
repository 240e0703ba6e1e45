//! Content of many requests: uploaded in parts, a few at a time.

use std::sync::Arc;
use std::time::Duration;

use object_store::{MultipartUpload, PutMultipartOptions};
use offcut::backend::{Key, PutOutcome};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};

use crate::error::{Kind, Trouble};
use crate::objects::{Objects, missing_bucket};
use crate::put::Content;
use crate::retry::limited;

/// Maximum number of parts in memory at the same moment, over all uploads of a store and its
/// clones.
pub const MAX_PARTS_IN_MEMORY: usize = 4;
/// Size of each part except the last, in bytes: the smallest that S3 takes. S3 takes 10 000 of them.
const PART_SIZE: u64 = 5 << 20;

impl Objects {
    /// Stores `content` in parts under `key`, which is derived from it, if nothing is there.
    ///
    /// In the meantime, others can store only the same bytes there, because the key is derived
    /// from them. Even different bytes would be noticed, unless they are stored during the last
    /// request.
    pub(crate) async fn upload(
        &self,
        key: &Key,
        content: &mut Content<'_>,
    ) -> Result<PutOutcome, Trouble> {
        self.within_timeout(self.prove_create_only()).await?;
        let mut is_first = true;
        loop {
            // First because it may have been stored before; later because a failed attempt may have
            // succeeded after all.
            if let Some(put) = self.compare(key, content).await? {
                return Ok(put);
            }
            match self.upload_once(key, content).await {
                Ok(put) => return Ok(put),
                // Single requests have been retried already.
                Err(trouble) if trouble.kind == Kind::Unreachable && is_first => is_first = false,
                // Some stores refuse a request that they have carried out: the answer was lost and
                // the request repeated.
                Err(trouble) => match self.compare(key, content).await {
                    Ok(Some(put)) => return Ok(put),
                    _ => return Err(missing_bucket(trouble)),
                },
            }
        }
    }

    async fn upload_once(
        &self,
        key: &Key,
        content: &mut Content<'_>,
    ) -> Result<PutOutcome, Trouble> {
        let mut upload = self.begin(key).await?;
        let completed = self.complete(&mut upload, key, content).await;
        if let Ok(PutOutcome::Stored) = completed {
            upload.open = None;
        } else if let Some(aborted) = upload.abort() {
            // Awaited, since a command's runtime may end right after this.
            _ = aborted.await;
        }
        completed
    }

    /// Begins an upload in a separate task: if the request were dropped, its upload could not be
    /// aborted, since its id would be unknown.
    async fn begin(&self, key: &Key) -> Result<Upload, Trouble> {
        let (objects, path) = (Arc::clone(&self.objects), self.path(key));
        let timeout = self.retry.timeout;
        let begun = tokio::spawn(async move {
            let open = objects.put_multipart_opts(&path, PutMultipartOptions::default());
            // If nobody waits for it any more, it is dropped, which aborts the upload.
            Ok(Upload {
                open: Some(limited(timeout, open).await?),
                parts: JoinSet::new(),
                timeout,
            })
        });
        begun.await.unwrap_or_else(|_| Err(Trouble::ended()))
    }

    /// Completes an upload, unless something is found under `key`.
    async fn complete(
        &self,
        upload: &mut Upload,
        key: &Key,
        content: &mut Content<'_>,
    ) -> Result<PutOutcome, Trouble> {
        let Upload {
            open,
            parts,
            timeout,
        } = upload;
        let (open, timeout) = (open.as_mut().ok_or_else(Trouble::ended)?, *timeout);
        let mut at = 0;
        while at < content.length() {
            // Takes the permit before the bytes, so that a waiting upload holds none.
            let permit = Arc::clone(&self.parts).acquire_owned().await;
            while let Some(done) = parts.try_join_next() {
                done.unwrap_or_else(|_| Err(Trouble::ended()))?;
            }
            let end = content.length().min(at + PART_SIZE);
            let part = open.put_part(content.read(at..end).await?.into());
            parts.spawn(async move {
                let done = limited(timeout, part).await;
                drop(permit);
                done
            });
            at = end;
        }
        while let Some(done) = parts.join_next().await {
            done.unwrap_or_else(|_| Err(Trouble::ended()))?;
        }
        // Completing overwrites, and uploads take long. So this checks once more, as late as
        // possible.
        if let Some(put) = self.compare(key, content).await? {
            return Ok(put);
        }
        limited(timeout, open.complete()).await?;
        Ok(PutOutcome::Stored)
    }
}

/// An upload in progress. Dropping it before it is complete aborts it: stores keep the parts of an
/// unfinished upload and charge for them.
#[derive(Debug)]
struct Upload {
    open: Option<Box<dyn MultipartUpload>>,
    parts: JoinSet<Result<(), Trouble>>,
    timeout: Duration,
}

impl Upload {
    /// Aborts it in a task. If the runtime ends first, the parts stay until a lifecycle rule removes them.
    fn abort(&mut self) -> Option<JoinHandle<()>> {
        let (mut open, runtime) = (self.open.take()?, Handle::try_current().ok()?);
        let (mut parts, timeout) = (std::mem::take(&mut self.parts), self.timeout);
        Some(runtime.spawn(async move {
            // The parts first: one that arrives after the abort would stay.
            parts.shutdown().await;
            if let Err(trouble) = limited(timeout, open.abort()).await {
                tracing::warn!(cause = %trouble, "could not abort an upload; the store may keep its parts: remove them with a lifecycle rule");
            }
        }))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.abort();
    }
}
