//! Content that is read block by block.

use std::ops::Range;

use crate::backend::{BackendError, ErrorKind, ReadRange};

/// Number of bytes read at once.
pub(crate) const BLOCK: u64 = 1 << 20;

/// Content that can be read in ranges.
pub(crate) trait Ranges {
    /// Reads the part of `range` that is within the content.
    fn read(
        &mut self,
        range: Range<u64>,
    ) -> impl Future<Output = Result<ReadRange, BackendError>> + Send;

    /// Error message for a read at `at` that returns nothing, although there are `total` bytes.
    fn too_short(&self, at: u64, total: u64) -> String;
}

/// Content being read in blocks of at most `block` bytes.
#[derive(Debug)]
pub(crate) struct BlockReader<R> {
    content: R,
    at: u64,
    block: u64,
    /// Offset of the end, once it is known.
    end: Option<u64>,
}

impl<R: Ranges> BlockReader<R> {
    /// The blocks from byte `at` on, to the end of the content.
    pub(crate) fn from(content: R, at: u64, block: u64) -> Self {
        Self {
            content,
            at,
            block,
            end: None,
        }
    }

    /// The blocks of `range`, which must exist in full.
    pub(crate) fn of(content: R, range: Range<u64>) -> Self {
        Self {
            end: Some(range.end),
            ..Self::from(content, range.start, BLOCK)
        }
    }

    /// Reads the next block; `None` after the end.
    pub(crate) async fn next(&mut self) -> Result<Option<ReadRange>, BackendError> {
        if self.is_at_end() {
            return Ok(None);
        }
        let block = self.at..self.at.saturating_add(self.block);
        let page = self.content.read(block).await?;
        if page.bytes.is_empty() && self.at < page.total {
            let message = self.content.too_short(self.at, page.total);
            return Err(BackendError::new(ErrorKind::Other, message));
        }
        self.at += page.bytes.len() as u64;
        self.end = Some(page.total);
        Ok(Some(page))
    }

    /// Returns `true` once the last block has been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.end.is_some_and(|end| self.at >= end)
    }
}
