//! Cached counts, so that each text is counted once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fingerprint::Fingerprint;

/// Number of counts that are kept: those of the texts of a few hundred long conversations, in some megabytes.
const MOST: usize = 256 * 1024;

/// The counts of all sessions. When there are too many, all are forgotten, and texts in use are counted again.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<HashMap<Fingerprint, u64>>);

impl Cache {
    /// The cost of a text, if it is known.
    pub(super) fn get(&self, print: Fingerprint) -> Option<u64> {
        self.counts().get(&print).copied()
    }

    /// Keeps the cost of a text.
    pub(super) fn insert(&self, print: Fingerprint, tokens: u64) {
        let mut counts = self.counts();
        if counts.len() >= MOST {
            counts.clear();
        }
        counts.insert(print, tokens);
    }

    /// Ignores poisoning: nothing that may panic runs under the lock, least of all a user's counter.
    fn counts(&self) -> MutexGuard<'_, HashMap<Fingerprint, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_too_many_counts() {
        let cache = Cache::default();
        let print = |i: usize| Fingerprint::of(&i.to_le_bytes());
        for i in 0..=2 * MOST {
            cache.insert(print(i), i as u64);
            assert_eq!(cache.get(print(i)), Some(i as u64));
        }
        assert_eq!(cache.get(print(0)), None);
        assert!(cache.counts().len() <= MOST);
    }
}
