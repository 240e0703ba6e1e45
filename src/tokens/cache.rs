//! Counts by text, so that each text is counted once.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shorter texts are counted anew: that costs no more than looking them up.
const MIN_TEXT: usize = 48;
/// Entries of one generation. What was not used for this many new texts is forgotten.
const GENERATION: usize = 1 << 15;

/// A text is known by its length and a hash under a random key, so nobody can make two texts collide on purpose.
type Text = (u64, usize);

#[derive(Debug, Default)]
pub(super) struct Cache {
    key: RandomState,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Text, u64>,
    old: HashMap<Text, u64>,
}

impl Cache {
    pub(super) fn count(&self, text: &str, count: impl FnOnce(&str) -> u64) -> u64 {
        if text.len() < MIN_TEXT {
            return count(text);
        }
        let key = (self.key.hash_one(text), text.len());
        if let Some(known) = self.lock().get(key) {
            return known;
        }
        // Counting may take long: not under the lock.
        let tokens = count(text);
        self.lock().insert(key, tokens);
        tokens
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // A panic of a user's counter happens outside the lock; what is in the map is right in any case.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn get(&mut self, key: Text) -> Option<u64> {
        if let Some(tokens) = self.young.get(&key) {
            return Some(*tokens);
        }
        let tokens = self.old.remove(&key)?;
        self.insert(key, tokens);
        Some(tokens)
    }

    fn insert(&mut self, key: Text, tokens: u64) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_counted_once_while_it_is_in_use() {
        let cache = Cache::default();
        let text = "x".repeat(100);
        assert_eq!(cache.count(&text, |_| 7), 7);
        assert_eq!(cache.count(&text, |_| unreachable!()), 7);
        for i in 0..GENERATION * 3 {
            cache.count(&format!("{i:060}"), |_| 1);
            cache.count(&text, |_| unreachable!("forgotten while in use"));
        }
        let held = cache.lock();
        assert!(held.young.len() + held.old.len() <= 2 * GENERATION);
    }
}
