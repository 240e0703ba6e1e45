//! Sizes before and after, and their sums.

use serde::Serialize;

/// A size before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Size before.
    pub before: u64,
    /// Size after.
    pub after: u64,
}

impl Change {
    pub(crate) fn none(size: u64) -> Self {
        Self {
            before: size,
            after: size,
        }
    }

    /// The rule of gain (L3) when a result arrives: the most bytes that may stand for `before`. No tokens are counted:
    /// so many fewer bytes are fewer tokens too.
    pub(crate) fn most_after(before: u64) -> u64 {
        before - before / 4
    }

    /// Returns true if this keeps to [`most_after`](Self::most_after).
    pub(crate) fn gains_uncounted(self) -> bool {
        self.after <= Self::most_after(self.before)
    }

    /// The rule of gain (L3) in a pass. These are bytes.
    pub(crate) fn gains(self, tokens: Self) -> bool {
        self.after < self.before && tokens.after <= tokens.before
    }

    /// Amount by which the size has shrunk; 0 if it has grown.
    #[must_use]
    pub fn saved(self) -> u64 {
        self.before.saturating_sub(self.after)
    }

    /// Amount by which the size has shrunk, negative if it has grown. Sums of it are exact whatever a counter returns.
    pub(crate) fn net(self) -> i128 {
        i128::from(self.before) - i128::from(self.after)
    }
}

/// Total amount saved. Subtracts what longer replacements add, such as those of handlers.
pub(crate) fn saved(changes: impl Iterator<Item = Change>) -> u64 {
    let sum: i128 = changes.map(Change::net).sum();
    sum.max(0).try_into().unwrap_or(u64::MAX)
}
