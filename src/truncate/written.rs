//! Reading back what a writer was given.

use std::ops::Range;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::backend::{BackendError, ErrorKind, Writer, hex};
use crate::store::BLOCK;

/// How often a writer is asked for what it was given.
const ATTEMPTS: usize = 8;

/// Some of what `writer` was given, at least a byte. Once a store has failed that may be the only
/// copy, so it is asked for again whatever the store says.
pub(super) async fn block(
    writer: &mut dyn Writer,
    range: Range<u64>,
) -> Result<Bytes, BackendError> {
    let range = range.start..range.end.min(range.start + BLOCK);
    let mut attempt = 1;
    let block = loop {
        match writer.read(range.clone()).await {
            Err(error) if attempt < ATTEMPTS => {
                tracing::warn!(attempt, %error, "reading back what was written failed; trying again");
            }
            answer => break answer?,
        }
        attempt += 1;
    };
    if block.is_empty() {
        return Err(BackendError::new(
            ErrorKind::Other,
            "the store gave back less than was written: it is broken",
        ));
    }
    Ok(block)
}

/// Writes a range of what `from` was given to `to`.
pub(super) async fn copy(
    from: &mut dyn Writer,
    range: Range<u64>,
    to: &mut dyn Writer,
) -> Result<(), BackendError> {
    let mut at = range.start;
    while at < range.end {
        let block = block(from, at..range.end).await?;
        at += block.len() as u64;
        to.write(block).await?;
    }
    Ok(())
}

/// The digest of the first `length` bytes that `writer` was given.
pub(super) async fn digest_of(
    writer: &mut dyn Writer,
    length: u64,
) -> Result<String, BackendError> {
    let (mut at, mut sha256) = (0, Sha256::new());
    while at < length {
        let block = block(writer, at..length).await?;
        at += block.len() as u64;
        sha256.update(&block);
    }
    Ok(hex(&sha256.finalize().into()))
}

pub(super) fn not_there() -> BackendError {
    BackendError::new(
        ErrorKind::Other,
        "what was written can't be read back: the store failed before",
    )
}
