//! Ranges that may extend past the end of their content.

use std::ops::Range;

/// The part of `range` within content of `length` bytes.
pub fn within(range: &Range<u64>, length: u64) -> Range<u64> {
    let end = range.end.min(length);
    range.start.min(end)..end
}

/// The part of `range` within `length` bytes in memory.
pub fn indexes_within(range: &Range<u64>, length: usize) -> Range<usize> {
    let Range { start, end } = within(range, length as u64);
    // Both are at most `length`.
    start as usize..end as usize
}
