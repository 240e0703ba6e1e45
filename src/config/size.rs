//! Sizes in files: a number of bytes, or one with its unit, `"8KB"` for 8 000 and `"8KiB"` for 8 192.

use std::fmt;

use bytesize::ByteSize;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

/// A size as files may spell it.
pub(super) struct Size(pub(super) usize);

impl Size {
    pub(super) fn of_text<E: de::Error>(text: &str) -> Result<Self, E> {
        // The text is not repeated: it may be a store's URL that stands where a size belongs.
        let has_unit = text.ends_with(['b', 'B']);
        let size = text.parse::<ByteSize>().ok().filter(|_| has_unit);
        let size = size.ok_or_else(|| {
            E::custom("not a size: write a number of bytes, or one with a unit, such as \"8KB\" (8000) or \"8KiB\" (8192)")
        })?;
        Ok(Self::of(size.as_u64()))
    }

    pub(super) fn of(bytes: u64) -> Self {
        Self(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    pub(super) fn of_signed<E: de::Error>(
        bytes: i64,
        expected: &dyn de::Expected,
    ) -> Result<Self, E> {
        let bytes = u64::try_from(bytes)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(bytes), expected))?;
        Ok(Self::of(bytes))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of bytes, or a size such as \"8KB\"")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
        Ok(Size::of(bytes))
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
        Size::of_signed(bytes, &self)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
        Size::of_text(text)
    }
}

/// Reads a size.
pub(super) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    Ok(Size::deserialize(from)?.0)
}

/// Reads a size, or nothing.
pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    Ok(Option::<Size>::deserialize(from)?.map(|size| size.0))
}
