//! Reading part of an object, and comparing a whole one.

use std::ops::Range;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryFutureExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange};
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
        if range.is_empty() || i64::try_from(range.start).is_err() {
            return self.read_length(path).await;
        }
        match self.get(path, range).await {
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
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let found = self.attempt(self.objects.get_opts(path, options)).await?;
        Ok(ReadRange {
            bytes: Bytes::new(),
            total: found.meta.size,
            stored_at: found.meta.last_modified.into(),
        })
    }

    async fn get(&self, path: &Path, range: &Range<u64>) -> Result<ReadRange, Trouble> {
        let asked = match (range.start, range.end) {
            (0, u64::MAX) => None,
            (start, end) if i64::try_from(end).is_err() => Some(GetRange::Offset(start)),
            (start, end) => Some(GetRange::Bounded(start..end)),
        };
        let options = GetOptions {
            range: asked,
            ..GetOptions::default()
        };
        let found = self.attempt(self.objects.get_opts(path, options)).await?;
        let (total, stored_at) = (found.meta.size, found.meta.last_modified.into());
        let length = range.end.min(total).saturating_sub(range.start);
        if found.range != (range.start..range.start + length) {
            return Err(Trouble::new(
                Kind::Broken,
                "the store returned a different range",
            ));
        }
        let mut bytes = Vec::new();
        // Not `with_capacity`, which aborts the process if the range is larger than the memory.
        let reserved = usize::try_from(length)
            .ok()
            .and_then(|length| bytes.try_reserve_exact(length).ok());
        reserved.ok_or_else(|| {
            Trouble::new(
                Kind::Other,
                "the range does not fit into memory; read a smaller one",
            )
        })?;
        let mut body = found.into_stream();
        while bytes.len() as u64 <= length
            && let Some(chunk) = self
                .attempt(async { body.next().await.transpose() })
                .await?
        {
            bytes.extend_from_slice(&chunk);
        }
        if bytes.len() as u64 != length {
            let cause = "the store returned more or fewer bytes than announced";
            return Err(Trouble::new(Kind::Broken, cause));
        }
        Ok(ReadRange {
            bytes: bytes.into(),
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
