//! Ranges that may go beyond the content that they are of.

use std::ops::Range;

/// The part of `range` that content of `length` bytes has.
pub(crate) fn within(range: &Range<u64>, length: u64) -> Range<u64> {
    let end = range.end.min(length);
    range.start.min(end)..end
}

/// The part of `range` that `length` bytes in memory have.
pub(crate) fn indexes_within(range: &Range<u64>, length: usize) -> Range<usize> {
    let Range { start, end } = within(range, length as u64);
    // Both are at most `length`.
    start as usize..end as usize
}
