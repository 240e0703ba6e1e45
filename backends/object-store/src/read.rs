//! Reading part of an object, and comparing a whole one.

use std::ops::Range;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use object_store::GetOptions;
use object_store::path::Path;
use offcut::backend::{Backend, Key, PutOutcome, ReadRange};

use crate::content::{Content, MAX_SINGLE_PUT};
use crate::error::{Kind, Trouble};
use crate::objects::Objects;

impl Objects {
    /// Reads the bytes of `range` that exist.
    pub(crate) async fn page(&self, path: &Path, range: Range<u64>) -> Result<ReadRange, Trouble> {
        let page = self.retried(|| self.page_once(path, &range));
        self.within_timeout(page).await
    }

    async fn page_once(&self, path: &Path, range: &Range<u64>) -> Result<ReadRange, Trouble> {
        // Some servers accept numbers of 63 bits only, and no object is longer than that.
        let range = range.start..range.end.min(i64::MAX as u64);
        if range.is_empty() {
            return self.read_length(path).await;
        }
        match self.get(path, range.clone()).await {
            // Stores refuse a range that begins past the end, and every range of an empty object.
            Err(trouble) if trouble.kind == Kind::Range => match self.read_length(path).await? {
                page if page.total <= range.start => Ok(page),
                _ => Err(trouble),
            },
            done => done,
        }
    }

    /// Reads only the total length, no bytes.
    pub(crate) async fn read_length(&self, path: &Path) -> Result<ReadRange, Trouble> {
        let options = GetOptions::default().with_head(true);
        let found = self.attempt(self.objects.get_opts(path, options)).await?;
        Ok(ReadRange {
            bytes: Bytes::new(),
            total: found.meta.size,
            stored_at: found.meta.last_modified.into(),
        })
    }

    async fn get(&self, path: &Path, range: Range<u64>) -> Result<ReadRange, Trouble> {
        let options = GetOptions::default().with_range(Some(range.clone()));
        let found = self.attempt(self.objects.get_opts(path, options)).await?;
        let (total, stored_at) = (found.meta.size, found.meta.last_modified.into());
        let length = range.end.min(total).saturating_sub(range.start);
        let broken = |cause: &str| Err(Trouble::new(Kind::Unreachable, cause));
        if found.range != (range.start..range.start + length) {
            return broken("the store returned a different range");
        }
        // `bytes` aborts the process if the range is larger than the memory.
        let fits = usize::try_from(length)
            .is_ok_and(|length| Vec::<u8>::new().try_reserve_exact(length).is_ok());
        if !fits {
            let cause = "the range does not fit into memory; read a smaller one";
            return Err(Trouble::new(Kind::Other, cause));
        }
        let bytes = self.attempt(found.bytes()).await?;
        if bytes.len() as u64 != length {
            return broken("the store returned more or fewer bytes than announced");
        }
        Ok(ReadRange {
            bytes,
            total,
            stored_at,
        })
    }

    /// Returns the outcome of storing `content` at `path` if something is there; `None` if nothing
    /// is.
    pub(crate) async fn compare(
        &self,
        path: &Path,
        content: &mut Content<'_>,
    ) -> Result<Option<PutOutcome>, Trouble> {
        match compare_pages(|block| self.page(path, block).boxed(), content).await {
            Err(trouble) if trouble.kind == Kind::NotFound => Ok(None),
            put => put.map(Some),
        }
    }

    /// Does the same as [`compare`](Self::compare) in the spool. If that can't be read, nothing is
    /// there.
    pub(crate) async fn compare_spooled(
        &self,
        key: &Key,
        content: &mut Content<'_>,
    ) -> Option<PutOutcome> {
        let page = |block| {
            let page = self.spool.read(key, block);
            page.map_err(|error| Trouble::of_spool(&error)).boxed()
        };
        compare_pages(page, content).await.ok()
    }
}

/// Returns the outcome of storing `content` where `page` reads.
async fn compare_pages<'p>(
    page: impl Fn(Range<u64>) -> BoxFuture<'p, Result<ReadRange, Trouble>>,
    content: &mut Content<'_>,
) -> Result<PutOutcome, Trouble> {
    let length = content.length();
    let (mut at, mut oldest) = (0, None);
    loop {
        let block = at..length.min(at + MAX_SINGLE_PUT);
        let page = page(block.clone()).await?;
        if page.total != length || page.bytes != content.read(block.clone()).await? {
            return Ok(PutOutcome::Taken);
        }
        // It may have been removed and stored again between two blocks.
        let stored_at = oldest.map_or(page.stored_at, |oldest| page.stored_at.min(oldest));
        oldest = Some(stored_at);
        at = block.end;
        if at >= length {
            return Ok(PutOutcome::AlreadyThere { stored_at });
        }
    }
}
