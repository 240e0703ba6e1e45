//! Sizes in files: a number of bytes, or one with a unit, `"8KB"` for 8 000 and `"8KiB"` for 8 192.

use std::fmt;

use bytesize::ByteSize;
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a size.
pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    from.deserialize_any(SizeVisitor(
        "a whole number of bytes, or a size such as \"8KB\"",
    ))
}

/// Reads an optional size.
pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    #[derive(Deserialize)]
    struct Size(#[serde(deserialize_with = "bytes")] usize);
    Ok(Option::<Size>::deserialize(from)?.map(|Size(bytes)| bytes))
}

/// Visitor for a size; the text says what is expected.
pub(super) struct SizeVisitor(pub(super) &'static str);

impl Visitor<'_> for SizeVisitor {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<usize, E> {
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<usize, E> {
        match u64::try_from(bytes) {
            Ok(bytes) => self.visit_u64(bytes),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(bytes), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<usize, E> {
        let has_unit = text.ends_with(['b', 'B']);
        let size = text.parse::<ByteSize>().ok().filter(|_| has_unit);
        // The error doesn't repeat the text, which may be a misplaced store URL.
        let size = size.ok_or_else(|| {
            E::custom("not a size: write a number of bytes, or one with a unit, such as \"8KB\" (8000) or \"8KiB\" (8192)")
        })?;
        self.visit_u64(size.as_u64())
    }
}
