//! Previews that were made before a clear pass needs them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use offcut_decisions::fingerprint::{Fingerprint, PassThroughHash};

/// Maximum number of bytes of previews that one conversation keeps.
const MOST: usize = 256 * 1024;
/// Time after which a hint is compared with the store again.
const FRESH: Duration = Duration::from_mins(10);

/// The previews for a result that consists of one text, as a pass would make them.
#[derive(Clone, Debug)]
pub(crate) struct PreparedResult {
    /// The preview of its text.
    pub(crate) of_text: String,
    /// Set if the text is a hint of ours.
    pub(crate) hint: Option<PreparedHint>,
}

/// The previews for a hint.
#[derive(Clone, Debug)]
pub(crate) struct PreparedHint {
    /// The preview of the preview that it shows.
    pub(crate) of_shown: String,
    /// The preview of the stored content, and the number of texts joined in that.
    pub(crate) of_content: (String, usize),
    /// The time at which the hint was compared with the content.
    pub(crate) compared_at: Instant,
}

impl PreparedResult {
    fn bytes(&self) -> usize {
        let of_hint = |hint: &PreparedHint| hint.of_shown.len() + hint.of_content.0.len();
        size_of::<Self>() + self.of_text.len() + self.hint.as_ref().map_or(0, of_hint)
    }
}

/// The previews for the results of one conversation, until a pass has used them. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    results: HashMap<Fingerprint, PreparedResult, PassThroughHash>,
    bytes: usize,
    /// Number of messages whose results have been prepared.
    messages: usize,
}

impl Prepared {
    /// The previews for a result. A hint that was compared too long ago is left out.
    pub(crate) fn get(&self, key: Fingerprint) -> Option<PreparedResult> {
        let mut result = self.state().results.get(&key).cloned()?;
        let is_fresh = |hint: &PreparedHint| hint.compared_at.elapsed() < FRESH;
        result.hint = result.hint.filter(is_fresh);
        Some(result)
    }

    pub(crate) fn has(&self, key: Fingerprint) -> bool {
        self.state().results.contains_key(&key)
    }

    /// Keeps previews, unless there are too many.
    pub(crate) fn add(&self, key: Fingerprint, result: PreparedResult) {
        let mut state = self.state();
        let bytes = state.bytes + result.bytes();
        if bytes <= MOST && state.results.insert(key, result).is_none() {
            state.bytes = bytes;
        }
    }

    /// Begins to prepare a conversation of `messages`, and returns the number of those that were
    /// prepared before.
    pub(crate) fn begin(&self, messages: usize) -> usize {
        let mut state = self.state();
        if state.messages > messages {
            // A shorter conversation has another history.
            *state = State::default();
        }
        state.messages
    }

    /// Notes that the first `messages` messages are prepared.
    pub(crate) fn end(&self, messages: usize) {
        self.state().messages = messages;
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        *self.state() = State::default();
    }

    /// Nothing panics under the lock, so if it is poisoned, the state is still whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use offcut_decisions::fingerprint::Secret;

    use super::*;

    fn result(bytes: usize, compared_at: Option<Instant>) -> PreparedResult {
        let hint = |compared_at| PreparedHint {
            of_shown: String::new(),
            of_content: (String::new(), 0),
            compared_at,
        };
        PreparedResult {
            of_text: "x".repeat(bytes),
            hint: compared_at.map(hint),
        }
    }

    #[test]
    fn previews_are_kept_up_to_a_limit() {
        let (secret, prepared) = (Secret::random(), Prepared::default());
        for number in 0..1_000_u32 {
            prepared.add(secret.of(&number.to_le_bytes()), result(1_000, None));
        }
        let state = prepared.state();
        assert!((MOST - 2_000..=MOST).contains(&state.bytes));
        assert!((200..262).contains(&state.results.len()));
    }

    #[test]
    fn a_comparison_is_believed_for_some_minutes() {
        let (key, prepared) = (Secret::random().of(b"a"), Prepared::default());
        for (age, is_fresh) in [(FRESH / 2, true), (FRESH, false)] {
            prepared.clear();
            let Some(then) = Instant::now().checked_sub(age) else {
                return;
            };
            prepared.add(key, result(1, Some(then)));
            let found = prepared.get(key).unwrap();
            assert_eq!(found.hint.is_some(), is_fresh);
        }
    }

    #[test]
    fn another_history_is_prepared_from_its_beginning() {
        let (key, prepared) = (Secret::random().of(b"a"), Prepared::default());
        prepared.add(key, result(1, None));
        assert_eq!(prepared.begin(8), 0);
        prepared.end(8);
        assert_eq!(prepared.begin(8), 8);
        assert!(prepared.has(key));
        assert_eq!(prepared.begin(3), 0);
        assert!(!prepared.has(key));
    }
}
