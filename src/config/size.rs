//! Sizes in files: a number of bytes, or one with a unit, `"8KB"` for 8 000 and `"8KiB"` for 8 192.

use bytesize::ByteSize;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Reads a size.
pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "must be a whole number of bytes, or a size such as \"8KB\""
    )]
    enum Written {
        Bytes(u64),
        WithUnit(String),
    }
    let bytes = match Written::deserialize(from)? {
        Written::Bytes(bytes) => bytes,
        Written::WithUnit(text) => {
            let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
            let size = text.parse::<ByteSize>().ok().filter(|_| has_unit);
            // The error doesn't repeat the text, which may be a misplaced store URL.
            let wrong = "not a size: write a number of bytes, or one with a unit, such as \"8KB\" (8000) or \"8KiB\" (8192)";
            size.ok_or_else(|| D::Error::custom(wrong))?.as_u64()
        }
    };
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Reads an optional size.
pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    #[derive(Deserialize)]
    struct Size(#[serde(deserialize_with = "bytes")] usize);
    Ok(Option::<Size>::deserialize(from)?.map(|Size(bytes)| bytes))
}
