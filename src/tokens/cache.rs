//! Cached counts, so that each text is counted once. A conversation caches a count for each of its
//! texts, and no conversation evicts another's counts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::seen::Seen;
use crate::decisions::fingerprint::{Fingerprint, PassThroughHash};

/// A count that this many passes in a row did not use is dropped. Several passes, so that
/// conversations that share a session don't evict each other's counts.
const PASSES: u64 = 64;
/// Unused shared counts are swept once there are at least this many counts.
const MIN_SWEEP: usize = 1024;

/// The counts of one conversation.
///
/// Each conversation holds the counts of its own texts, and only it drops them. A text that several
/// conversations hold, such as a system prompt, is counted once for all through the shared counts.
#[derive(Debug, Default)]
pub(super) struct Cache {
    own: Mutex<Own>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Own {
    counts: HashMap<Fingerprint, Entry, PassThroughHash>,
    pass: u64,
    /// The texts of the last pass, unless one is running.
    last: Seen,
}

#[derive(Debug)]
struct Entry {
    tokens: u64,
    /// The last pass that used the count.
    seen: u64,
    /// Keeps the count visible to other conversations.
    _shared: Arc<u64>,
}

#[derive(Debug, Default)]
struct Shared {
    counts: HashMap<Fingerprint, Weak<u64>, PassThroughHash>,
    sweep_at: usize,
}

impl Cache {
    /// Makes a cache for another conversation, which shares counts with this one.
    pub(super) fn sibling(&self) -> Self {
        Self {
            own: Mutex::default(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Begins a pass and returns the texts of the last one.
    pub(super) fn begin_pass(&self) -> Seen {
        let mut own = lock(&self.own);
        own.pass += 1;
        let seen = std::mem::take(&mut own.last);
        if own.pass.is_multiple_of(PASSES) {
            own.touch(seen.prints());
            let last = own.pass - PASSES;
            own.counts.retain(|_, entry| entry.seen >= last);
            let room = own.counts.len() * 2;
            own.counts.shrink_to(room);
        }
        seen.restart()
    }

    /// Ends a pass, which has seen these texts.
    pub(super) fn end_pass(&self, mut seen: Seen) {
        let mut own = lock(&self.own);
        own.touch(seen.finish());
        own.last = seen;
    }

    /// The cost of a text, if any conversation has counted it and still holds the count.
    pub(super) fn get(&self, print: Fingerprint) -> Option<u64> {
        let mut own = lock(&self.own);
        let pass = own.pass;
        if let Some(entry) = own.counts.get_mut(&print) {
            entry.seen = pass;
            return Some(entry.tokens);
        }
        let shared = lock(&self.shared)
            .counts
            .get(&print)
            .and_then(Weak::upgrade)?;
        let tokens = *shared;
        own.counts.insert(
            print,
            Entry {
                tokens,
                seen: pass,
                _shared: shared,
            },
        );
        Some(tokens)
    }

    /// Stores the cost of a text.
    pub(super) fn insert(&self, print: Fingerprint, tokens: u64) {
        let mut own = lock(&self.own);
        let seen = own.pass;
        let shared = Arc::new(tokens);
        lock(&self.shared).insert(print, Arc::downgrade(&shared));
        own.counts.insert(
            print,
            Entry {
                tokens,
                seen,
                _shared: shared,
            },
        );
    }
}

impl Own {
    /// Marks texts as used that a pass recognized without looking them up here.
    fn touch(&mut self, prints: impl Iterator<Item = Fingerprint>) {
        for print in prints {
            if let Some(entry) = self.counts.get_mut(&print) {
                entry.seen = self.pass;
            }
        }
    }
}

impl Shared {
    fn insert(&mut self, print: Fingerprint, tokens: Weak<u64>) {
        if self.counts.len() >= self.sweep_at.max(MIN_SWEEP) {
            self.counts.retain(|_, tokens| tokens.strong_count() > 0);
            // The next sweep comes after at least as many new counts, so the cost of each new one
            // is constant.
            self.sweep_at = self.counts.len() * 2;
            let room = self.sweep_at;
            self.counts.shrink_to(room);
        }
        self.counts.insert(print, tokens);
    }
}

/// Ignores poisoning: nothing that may panic runs under the locks, least of all a user's counter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decisions::fingerprint::Secret;

    fn prints(secret: &Secret, range: std::ops::Range<u32>) -> Vec<Fingerprint> {
        range.map(|i| secret.of(&i.to_le_bytes())).collect()
    }

    fn held(cache: &Cache) -> (usize, usize) {
        (
            lock(&cache.own).counts.len(),
            lock(&cache.shared).counts.len(),
        )
    }

    #[test]
    fn counts_in_use_are_kept_and_others_forgotten() {
        let (secret, cache) = (Secret::random(), Cache::default());
        let all = prints(&secret, 0..3_000);
        all.iter().for_each(|print| cache.insert(*print, 7));
        for _ in 0..3 * PASSES {
            cache.begin_pass();
            assert!(all[..100].iter().all(|print| cache.get(*print) == Some(7)));
        }
        assert_eq!(held(&cache).0, 100);
        assert_eq!(cache.get(all[2_000]), None);
        prints(&secret, 3_000..7_000)
            .into_iter()
            .for_each(|print| cache.insert(print, 8));
        assert!(held(&cache).1 <= 2 * held(&cache).0, "{:?}", held(&cache));
    }

    #[test]
    fn conversations_share_counts_and_displace_none() {
        let (secret, one) = (Secret::random(), Cache::default());
        let two = one.sibling();
        let (idle, busy) = (prints(&secret, 0..50), prints(&secret, 50..20_000));
        idle.iter().for_each(|print| one.insert(*print, 1));
        assert_eq!(two.get(idle[0]), Some(1), "counted by the other");
        for (turn, print) in busy.iter().enumerate() {
            two.insert(*print, 2);
            if turn % 10 == 0 {
                two.begin_pass();
            }
        }
        assert!(
            idle.iter().all(|print| one.get(*print) == Some(1)),
            "displaced"
        );
        drop(one);
        assert_eq!(two.get(idle[0]), None, "nobody holds it");
        assert!(held(&two).0 < 2_000, "{:?}", held(&two));
    }

    #[test]
    fn conversations_that_share_a_session_take_turns() {
        let (secret, cache) = (Secret::random(), Cache::default());
        let conversations: Vec<_> = (0..32)
            .map(|i| prints(&secret, i * 100..i * 100 + 100))
            .collect();
        conversations
            .iter()
            .flatten()
            .for_each(|print| cache.insert(*print, 3));
        for _ in 0..10 {
            for conversation in &conversations {
                cache.begin_pass();
                assert!(conversation.iter().all(|print| cache.get(*print).is_some()));
            }
        }
    }
}
