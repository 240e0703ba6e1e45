//! Chooses how many of the oldest results go, and whether a pass is worth it.

use crate::config::Settings;
use crate::report::Sum;

/// Takes the oldest edits until the target is reached, and tells whether they free enough for a
/// pass. Compares exact sums of tokens.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    target: Option<u64>,
    at_least: u64,
    counted: u64,
    taken: Sum,
}

impl Choice {
    /// The choice that the settings ask for. `counted` is the conversation's tokens.
    pub(super) fn new(settings: &Settings, counted: u64) -> Self {
        Self {
            target: settings.clear_target_tokens,
            at_least: settings.clear_at_least_tokens,
            counted,
            taken: Sum::default(),
        }
    }

    /// A choice that takes everything.
    pub(super) fn all(counted: u64) -> Self {
        Self {
            target: None,
            at_least: 0,
            counted,
            taken: Sum::default(),
        }
    }

    /// Returns true if there is a target, which the pass may miss.
    pub(super) fn has_target(&self) -> bool {
        self.target.is_some()
    }

    /// The conversation's tokens after a change.
    pub(super) fn left_after(&self, change: Sum) -> u128 {
        change.left_of(self.counted)
    }

    pub(super) fn is_enough(&self) -> bool {
        self.target
            .is_some_and(|target| self.taken.left_of(self.counted) <= u128::from(target))
    }

    /// Takes the next edit, which makes `change`, unless the target is reached. Returns true if it
    /// is taken.
    pub(super) fn try_take(&mut self, change: Sum) -> bool {
        let is_taken = !self.is_enough();
        if is_taken {
            self.taken = self.taken.plus(change);
        }
        is_taken
    }

    /// Corrects the total: an edit that was `planned` turned out to be `done`.
    pub(super) fn correct(&mut self, planned: Sum, done: Sum) {
        self.taken = self.taken.minus(planned).plus(done);
    }

    /// Returns true if the edits taken free too little for a pass.
    pub(super) fn is_too_little(&self) -> bool {
        self.taken.saved() < u128::from(self.at_least)
    }
}
