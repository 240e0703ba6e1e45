//! Cached counts, so that each text is counted once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fingerprint::Fingerprint;

/// A session's count that this many passes in a row did not use is dropped, after twice as many at the latest. Several
/// passes, so that conversations that share a session don't evict each other's counts.
const PASSES: u64 = 64;
/// Number of counts of all sessions in each generation: enough for what conversations have in common.
const SHARED: usize = 16 * 1024;

/// The counts of one session, which no other evicts. A text that several have, such as a system prompt, is counted once
/// for all.
#[derive(Debug, Default)]
pub(super) struct Cache {
    own: Mutex<Counts>,
    passes: AtomicU64,
    shared: Arc<Mutex<Counts>>,
}

/// Counts in two generations: what the newer one does not use goes with the older one.
#[derive(Debug, Default)]
struct Counts {
    new: HashMap<Fingerprint, u64>,
    old: HashMap<Fingerprint, u64>,
}

impl Counts {
    fn get(&mut self, print: Fingerprint) -> Option<u64> {
        if let Some(tokens) = self.new.get(&print) {
            return Some(*tokens);
        }
        let tokens = self.old.remove(&print)?;
        self.new.insert(print, tokens);
        Some(tokens)
    }

    fn turn(&mut self) {
        self.old = std::mem::take(&mut self.new);
    }
}

impl Cache {
    /// The cache of another session.
    pub(super) fn sibling(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            ..Self::default()
        }
    }

    /// Begins a pass.
    pub(super) fn begin_pass(&self) {
        let before = self.passes.fetch_add(1, Ordering::Relaxed);
        if (before + 1).is_multiple_of(PASSES) {
            lock(&self.own).turn();
        }
    }

    /// The cost of a text, if it is known.
    pub(super) fn get(&self, print: Fingerprint) -> Option<u64> {
        let mut own = lock(&self.own);
        own.get(print).or_else(|| {
            let tokens = lock(&self.shared).get(print)?;
            own.new.insert(print, tokens);
            Some(tokens)
        })
    }

    /// Keeps the cost of a text.
    pub(super) fn insert(&self, print: Fingerprint, tokens: u64) {
        lock(&self.own).new.insert(print, tokens);
        let mut shared = lock(&self.shared);
        if shared.new.len() >= SHARED {
            shared.turn();
        }
        shared.new.insert(print, tokens);
    }
}

/// Ignores poisoning: nothing that may panic runs under the locks, least of all a user's counter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_use_are_kept_and_others_forgotten() {
        let cache = Cache::default();
        let prints = |range: std::ops::Range<usize>| -> Vec<_> {
            range.map(|i| Fingerprint::of(&i.to_le_bytes())).collect()
        };
        let all = prints(0..3_000);
        all.iter().for_each(|print| cache.insert(*print, 7));
        let other = cache.sibling();
        assert_eq!(other.get(all[2_000]), Some(7), "counted by the other");
        for print in prints(3_000..3_000 + 3 * SHARED) {
            other.insert(print, 8);
        }
        for pass in 0..3 * PASSES {
            cache.begin_pass();
            // Conversations that share a session take turns.
            let used = if pass % 32 == 0 {
                &all[..200]
            } else {
                &all[..100]
            };
            assert!(used.iter().all(|print| cache.get(*print) == Some(7)));
        }
        assert_eq!(cache.get(all[2_000]), None);
        for counts in [lock(&cache.own), lock(&cache.shared)] {
            assert!(counts.new.len() + counts.old.len() <= 2 * SHARED);
        }
        let own = lock(&cache.own);
        assert!(own.new.len() + own.old.len() <= 200);
    }
}
