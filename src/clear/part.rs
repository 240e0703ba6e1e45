//! Sizes of parts.

use crate::format::PartRef;
use crate::tokens::Text;

/// Number of bytes of a part's content.
pub(crate) fn part_bytes(part: PartRef<'_>) -> u64 {
    match part {
        PartRef::Media { data, .. } => data.decoded_len(),
        part => Text::of_part(part).map_or(0, Text::bytes),
    }
}
