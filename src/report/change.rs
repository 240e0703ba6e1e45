//! Sizes before and after, and their sums.

use serde::Serialize;

/// A size before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

impl Change {
    pub(crate) fn none(size: u64) -> Self {
        Self {
            before: size,
            after: size,
        }
    }

    /// How much less it is.
    #[must_use]
    pub fn saved(self) -> u64 {
        self.before.saturating_sub(self.after)
    }
}

/// What handlers put there may be longer: that counts too.
pub(crate) fn saved(changes: impl Iterator<Item = Change>) -> u64 {
    let sum = changes.map(Sum::from).fold(Sum::default(), Sum::plus);
    sum.saved().try_into().unwrap_or(u64::MAX)
}

/// Sizes of several things, before and after. A counter may say anything: the sums are exact all
/// the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    before: u128,
    after: u128,
}

impl From<Change> for Sum {
    fn from(change: Change) -> Self {
        Self {
            before: change.before.into(),
            after: change.after.into(),
        }
    }
}

impl Sum {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            before: self.before + other.before,
            after: self.after + other.after,
        }
    }

    /// Without something that is part of it.
    pub(crate) fn minus(self, part: Self) -> Self {
        Self {
            before: self.before.saturating_sub(part.before),
            after: self.after.saturating_sub(part.after),
        }
    }

    /// How much less it is.
    pub(crate) fn saved(self) -> u128 {
        self.before.saturating_sub(self.after)
    }

    /// What is left of `all`, of which this is part before.
    pub(crate) fn left_of(self, all: u64) -> u128 {
        (u128::from(all) + self.after).saturating_sub(self.before)
    }
}
