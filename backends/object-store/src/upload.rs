//! Content of many requests: uploaded in parts, a few at a time.

use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{MultipartUpload, PutMultipartOptions};
use offcut::backend::PutOutcome;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinSet};

use crate::content::Content;
use crate::error::{Kind, Trouble};
use crate::limited::limited;
use crate::objects::{Objects, missing_bucket};

/// Maximum number of parts in memory at the same moment, over all uploads of a store and its
/// clones.
pub const MAX_PARTS_IN_MEMORY: usize = 4;
/// Size of each part except the last, in bytes: the smallest that S3 takes.
const PART_SIZE: u64 = 5 << 20;
/// Maximum number of parts of an upload in S3.
const MAX_PARTS_PER_UPLOAD: u64 = 10_000;

impl Objects {
    /// Stores `content` in parts at `path`, which is derived from it, if nothing is there.
    ///
    /// In the meantime, others can store only the same bytes there, because the path is derived
    /// from them. Even different bytes would be noticed, unless they are stored during the last
    /// request.
    pub(crate) async fn upload(
        &self,
        path: &Path,
        content: &mut Content<'_>,
    ) -> Result<PutOutcome, Trouble> {
        if content.length() > PART_SIZE * MAX_PARTS_PER_UPLOAD {
            return Err(Trouble::new(Kind::TooLong, "it is over 48 GiB"));
        }
        self.within_timeout(self.prove_create_only()).await?;
        let mut is_first = true;
        loop {
            // First because it may have been stored before; later because a failed attempt may have
            // succeeded after all.
            if let Some(put) = self.compare(path, content).await? {
                return Ok(put);
            }
            match self.upload_once(path, content).await {
                Ok(put) => return Ok(put),
                // Single requests have been retried already.
                Err(trouble) if trouble.kind.is_passing() && is_first => is_first = false,
                // Some stores refuse a request that they have carried out: the answer was lost and
                // the request repeated.
                Err(trouble) => match self.compare(path, content).await {
                    Ok(Some(put)) => return Ok(put),
                    _ => return Err(missing_bucket(trouble)),
                },
            }
        }
    }

    /// Begins an upload in a separate task: if the request were dropped, its upload could not be
    /// aborted, since its id would be unknown.
    async fn begin(&self, path: &Path) -> Result<Upload, Trouble> {
        let (objects, path) = (Arc::clone(&self.objects), path.clone());
        let timeout = self.retry.timeout;
        let begun = tokio::spawn(async move {
            let options = PutMultipartOptions::default();
            let open = limited(timeout, objects.put_multipart_opts(&path, options)).await?;
            // If nobody waits for it any more, it is dropped, which aborts the upload.
            Ok(Upload {
                open: Some(open),
                parts: JoinSet::new(),
                timeout,
            })
        });
        begun
            .await
            .unwrap_or_else(|_| Err(Trouble::new(Kind::Unreachable, "the runtime ended")))
    }

    async fn upload_once(
        &self,
        path: &Path,
        content: &mut Content<'_>,
    ) -> Result<PutOutcome, Trouble> {
        let mut upload = self.begin(path).await?;
        let Upload { open, parts, .. } = &mut upload;
        let Some(open) = open else {
            return Ok(PutOutcome::Taken);
        };
        let completed = self.upload_parts(open, parts, path, content).await;
        // Awaited, since a command's runtime may end right after this.
        if !matches!(completed, Ok(None)) {
            abort(open, parts, self.retry.timeout).await;
        }
        upload.open = None;
        completed.map(|found| found.unwrap_or(PutOutcome::Stored))
    }

    /// Completes an upload, unless something is found at `path`.
    async fn upload_parts(
        &self,
        open: &mut Box<dyn MultipartUpload>,
        parts: &mut JoinSet<Result<(), Trouble>>,
        path: &Path,
        content: &mut Content<'_>,
    ) -> Result<Option<PutOutcome>, Trouble> {
        let (timeout, length) = (self.retry.timeout, content.length());
        let mut at = 0;
        while at < length {
            // Takes the permit before the bytes, so that a waiting upload holds none.
            let permit = Arc::clone(&self.parts).acquire_owned().await;
            while let Some(done) = parts.try_join_next() {
                joined(done)?;
            }
            let end = length.min(at + PART_SIZE);
            let part = open.put_part(content.read(at..end).await?.into());
            parts.spawn(async move {
                let done = limited(timeout, part).await;
                drop(permit);
                done
            });
            at = end;
        }
        while let Some(done) = parts.join_next().await {
            joined(done)?;
        }
        // Completing overwrites, and uploads take long. So this checks once more, as late as
        // possible.
        if let Some(put) = self.compare(path, content).await? {
            return Ok(Some(put));
        }
        limited(timeout, open.complete()).await?;
        Ok(None)
    }
}

fn joined(done: Result<Result<(), Trouble>, JoinError>) -> Result<(), Trouble> {
    done.unwrap_or_else(|_| Err(Trouble::new(Kind::Unreachable, "a part's task ended early")))
}

/// An upload in progress. Dropping it before it is complete aborts it: stores keep the parts of an
/// unfinished upload and charge for them.
#[derive(Debug)]
struct Upload {
    open: Option<Box<dyn MultipartUpload>>,
    parts: JoinSet<Result<(), Trouble>>,
    timeout: Duration,
}

impl Drop for Upload {
    fn drop(&mut self) {
        let (Some(mut open), Ok(runtime)) = (self.open.take(), Handle::try_current()) else {
            return;
        };
        let (mut parts, timeout) = (std::mem::take(&mut self.parts), self.timeout);
        // If the runtime ends first, the parts stay until a lifecycle rule removes them.
        runtime.spawn(async move { abort(&mut open, &mut parts, timeout).await });
    }
}

async fn abort(
    open: &mut Box<dyn MultipartUpload>,
    parts: &mut JoinSet<Result<(), Trouble>>,
    timeout: Duration,
) {
    // The parts first: one that arrives after the abort would stay.
    parts.shutdown().await;
    if let Err(trouble) = limited(timeout, open.abort()).await {
        tracing::warn!(cause = %trouble, "could not abort an upload; the store may keep its parts: remove them with a lifecycle rule");
    }
}
