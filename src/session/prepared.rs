//! Short texts that were made before a clear pass needs them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use offcut_decisions::fingerprint::{Fingerprint, PassThroughHash};

use crate::backend::Location;

/// A text for a result that may be cleared. It is what a pass would make itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShortText {
    /// The preview of a text that is not stored yet.
    Preview(String),
    /// The hint that takes the place of a longer one, which was compared with the stored content,
    /// and the location of that content.
    Hint(String, Location),
}

/// The texts for the results of one conversation, until a pass has used them. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    texts: HashMap<Fingerprint, ShortText, PassThroughHash>,
    /// Number of messages whose results have been prepared.
    messages: usize,
}

impl Prepared {
    pub(crate) fn get(&self, key: Fingerprint) -> Option<ShortText> {
        self.state().texts.get(&key).cloned()
    }

    pub(crate) fn has(&self, key: Fingerprint) -> bool {
        self.state().texts.contains_key(&key)
    }

    pub(crate) fn add(&self, key: Fingerprint, text: ShortText) {
        self.state().texts.insert(key, text);
    }

    /// Notes that a conversation of `messages` is prepared now. Returns the number of those that
    /// were prepared before.
    pub(crate) fn go_on(&self, messages: usize) -> usize {
        let before = std::mem::replace(&mut self.state().messages, messages);
        // A shorter conversation has another history.
        if before > messages { 0 } else { before }
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
