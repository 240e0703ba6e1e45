//! Token counts of stretches of text that were counted before.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The longest stretch that is kept, in bytes. Longer ones hardly occur twice.
const LONGEST: usize = 40;
/// Number of stretches in each generation.
const GENERATION: usize = 16 * 1024;

type Counts = HashMap<Box<str>, u64, RandomState>;

/// Counts in two generations. Once the newer one is full, it takes the place of the older one, so that what was not needed
/// for a while is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Known {
    new: Counts,
    old: Counts,
}

impl Known {
    /// The count of `text`, if it is known.
    pub(crate) fn get(&mut self, text: &str) -> Option<u64> {
        if let Some(tokens) = self.new.get(text) {
            return Some(*tokens);
        }
        let (text, tokens) = self.old.remove_entry(text)?;
        self.insert(text, tokens);
        Some(tokens)
    }

    /// Keeps the count of `text`, unless `text` is long.
    pub(crate) fn keep(&mut self, text: &str, tokens: u64) {
        if text.len() <= LONGEST {
            self.insert(text.into(), tokens);
        }
    }

    fn insert(&mut self, text: Box<str>, tokens: u64) {
        if self.new.len() >= GENERATION {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(text, tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays_and_the_rest_is_forgotten() {
        let mut known = Known::default();
        known.keep("needed", 1);
        known.keep("not needed", 2);
        for n in 0..3 * GENERATION {
            known.keep(&n.to_string(), 3);
            assert_eq!(known.get("needed"), Some(1));
        }
        assert_eq!(known.get("not needed"), None);
        assert!(known.new.len() + known.old.len() <= 2 * GENERATION);
    }

    #[test]
    fn long_stretches_are_not_kept() {
        let mut known = Known::default();
        known.keep(&"x".repeat(LONGEST + 1), 1);
        assert!(known.new.is_empty());
    }
}
