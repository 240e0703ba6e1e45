//! Content to store.

use std::ops::Range;

use bytes::Bytes;
use offcut::backend::Writer;

use crate::error::{Kind, Trouble};

/// Content up to this many bytes is one object from one request; longer content is uploaded in
/// parts.
pub(crate) const MAX_SINGLE_PUT: u64 = 8 << 20;

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

    /// Returns true if it is uploaded in parts.
    pub(crate) fn is_long(&self) -> bool {
        self.length() > MAX_SINGLE_PUT
    }

    /// Reads the bytes of `range`, which must lie within the content.
    pub(crate) async fn read(&mut self, range: Range<u64>) -> Result<Bytes, Trouble> {
        let length = range.end - range.start;
        let bytes = match self {
            // The length of content in memory fits a `usize`.
            Self::Whole(bytes) => bytes.slice(range.start as usize..range.end as usize),
            Self::Written { writer, .. } => writer
                .read(range)
                .await
                .map_err(|error| Trouble::of_spool(&error))?,
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
