//! Cached counts, so that each text is counted once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::fingerprint::Fingerprint;

/// Number of counts in each generation: the texts of a few hundred long conversations, in some megabytes.
const MOST: usize = 128 * 1024;

/// The counts of all sessions, in two generations: what the newer one does not use goes with the
/// older one.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    new: HashMap<Fingerprint, u64>,
    old: HashMap<Fingerprint, u64>,
}

impl Cache {
    /// The cost of a text, if it is known.
    pub(super) fn get(&self, print: Fingerprint) -> Option<u64> {
        self.with(|counts| {
            if let Some(tokens) = counts.new.get(&print) {
                return Some(*tokens);
            }
            let tokens = counts.old.remove(&print)?;
            counts.insert(print, tokens);
            Some(tokens)
        })
    }

    /// Keeps the cost of a text.
    pub(super) fn insert(&self, print: Fingerprint, tokens: u64) {
        self.with(|counts| counts.insert(print, tokens));
    }

    /// Ignores poisoning: nothing that may panic runs under the lock, least of all a user's counter.
    fn with<T>(&self, work: impl FnOnce(&mut Counts) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Counts {
    fn insert(&mut self, print: Fingerprint, tokens: u64) {
        if self.new.len() >= MOST {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(print, tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_use_are_kept_and_others_forgotten() {
        let cache = Cache::default();
        let print = |i: usize| Fingerprint::of(&i.to_le_bytes());
        for i in 0..4 * MOST {
            cache.insert(print(i), i as u64);
            assert_eq!(cache.get(print(0)), Some(0));
        }
        assert_eq!(cache.get(print(100)), None);
        cache.with(|counts| assert!(counts.new.len() + counts.old.len() <= 2 * MOST));
    }
}
