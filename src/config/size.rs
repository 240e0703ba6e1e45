//! Sizes in files: a number of bytes, or one with a unit, `"8KB"` for 8 000 and `"8KiB"` for 8 192.

use bytesize::ByteSize;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Reads a size.
pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    // The error doesn't repeat the text, which may be a misplaced store URL.
    let size = ByteSize::deserialize(from).map_err(|_| {
        D::Error::custom("not a size: write a whole number of bytes, or one with a unit, such as \"8KB\" (8000) or \"8KiB\" (8192)")
    })?;
    Ok(usize::try_from(size.as_u64()).unwrap_or(usize::MAX))
}

/// Reads an optional size.
pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    #[derive(Deserialize)]
    struct Size(#[serde(deserialize_with = "bytes")] usize);
    Ok(Option::<Size>::deserialize(from)?.map(|Size(bytes)| bytes))
}
