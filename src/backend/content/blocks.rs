//! Content that is read block by block.

use std::ops::Range;

use crate::backend::{BackendError, ErrorKind, ReadRange};

/// Number of bytes read at once.
const BLOCK: u64 = 1 << 20;

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

/// Content being read in blocks.
#[derive(Debug)]
pub(crate) struct BlockReader<R> {
    content: R,
    at: u64,
    /// Offset of the end, once it is known.
    end: Option<u64>,
}

impl<R: Ranges> BlockReader<R> {
    /// All blocks of the content.
    pub(crate) fn from(content: R) -> Self {
        Self {
            content,
            at: 0,
            end: None,
        }
    }

    /// The blocks of `range`, which must exist in full.
    pub(crate) fn of(content: R, range: Range<u64>) -> Self {
        Self {
            content,
            at: range.start,
            end: Some(range.end),
        }
    }

    /// Reads the next block; `None` after the end.
    pub(crate) async fn next(&mut self) -> Result<Option<ReadRange>, BackendError> {
        if self.end.is_some_and(|end| self.at >= end) {
            return Ok(None);
        }
        let block = self.at..self.at.saturating_add(BLOCK);
        let page = self.content.read(block).await?;
        if page.bytes.is_empty() && self.at < page.total {
            let message = self.content.too_short(self.at, page.total);
            return Err(BackendError::new(ErrorKind::Other, message));
        }
        self.at += page.bytes.len() as u64;
        self.end = Some(page.total);
        Ok(Some(page))
    }
}
