//! How many of the oldest results go, and whether that is worth a pass.

use crate::config::Settings;
use crate::report::Sum;

/// Takes the oldest until the target is reached, and says whether that is worth a pass. What it
/// compares is what is freed, to the token.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    target: Option<u64>,
    at_least: u64,
    counted: u64,
    taken: Sum,
}

impl Choice {
    /// The choice that the settings ask for. `counted` is what there is; `freed` is what the pass
    /// has freed already.
    pub(super) fn new(settings: &Settings, counted: u64, freed: u64) -> Self {
        Self {
            target: settings.clear_target_tokens,
            at_least: settings.clear_at_least_tokens.saturating_sub(freed),
            counted,
            taken: Sum::default(),
        }
    }

    /// Takes all of them.
    pub(super) fn all() -> Self {
        Self {
            target: None,
            at_least: 0,
            counted: 0,
            taken: Sum::default(),
        }
    }

    /// Whether there is a target that could be missed.
    pub(super) fn has_target(&self) -> bool {
        self.target.is_some()
    }

    pub(super) fn is_enough(&self) -> bool {
        self.target
            .is_some_and(|target| self.taken.left_of(self.counted) <= u128::from(target))
    }

    /// Whether the next one is taken, which changes so much.
    pub(super) fn takes(&mut self, change: Sum) -> bool {
        let is_taken = !self.is_enough();
        if is_taken {
            self.taken = self.taken.plus(change);
        }
        is_taken
    }

    /// What was taken as `planned` turned out to be `done`.
    pub(super) fn correct(&mut self, planned: Sum, done: Sum) {
        self.taken = self.taken.minus(planned).plus(done);
    }

    /// Whether what was taken frees too little for a pass.
    pub(super) fn is_too_little(&self) -> bool {
        frees_too_little(self.taken.saved(), self.at_least)
    }
}

/// Whether a pass that frees so many tokens clears nothing, where it must free `at_least` so many.
pub(super) fn frees_too_little(freed: u128, at_least: u64) -> bool {
    freed < u128::from(at_least)
}
