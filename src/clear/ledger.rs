//! Decisions to repeat, for loops that hand in the original history every turn.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use crate::content::Part;
use crate::format::{Arguments, Call, Data, PartRef, ResultHead};

/// What a slot held, for all that matters: two slots with the same fingerprint hold the same bytes under the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn of_result(head: ResultHead<'_>, parts: &[PartRef<'_>]) -> Self {
        let mut hash = Fields(Sha256::new_with_prefix(b"result"));
        hash.add(b'i', head.id.as_bytes());
        for part in parts {
            match part {
                PartRef::Text(text) => hash.add(b't', text.as_bytes()),
                PartRef::Json(value) => hash.add(b'j', value.to_string().as_bytes()),
                PartRef::Media { mime, data } => {
                    hash.add(b'm', mime.as_bytes());
                    match data {
                        Data::Base64(text) => hash.add(b'6', text.as_bytes()),
                        Data::Bytes(bytes) => hash.add(b'b', bytes),
                    }
                }
                PartRef::Link { mime, url } => {
                    hash.add(b'm', mime.unwrap_or_default().as_bytes());
                    hash.add(b'l', url.as_bytes());
                }
                PartRef::Opaque(value) => hash.add(b'o', value.to_string().as_bytes()),
            }
        }
        hash.finish()
    }

    pub(super) fn of_call(call: Call<'_>) -> Self {
        let mut hash = Fields(Sha256::new_with_prefix(b"call"));
        hash.add(b'i', call.id.as_bytes());
        hash.add(b'n', call.name.as_bytes());
        match call.arguments {
            Arguments::Text(text) => hash.add(b't', text.as_bytes()),
            Arguments::Json(value) => hash.add(b'j', value.to_string().as_bytes()),
        }
        hash.finish()
    }
}

/// Fields with their lengths, so that no two lists of fields hash the same bytes.
struct Fields(Sha256);

impl Fields {
    fn add(&mut self, kind: u8, bytes: &[u8]) {
        self.0.update([kind]);
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}

/// What takes the place of a result or of a call's arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Replacement {
    Parts(Vec<Part>),
    Arguments(String),
}

/// What one session replaced: the n-th original of a fingerprint is replaced as the n-th one was before.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    replacements: HashMap<Fingerprint, Vec<Replacement>>,
    /// Which original a replacement stands for, so that occurrences are counted right where originals and hints are mixed.
    originals: HashMap<Fingerprint, Fingerprint>,
}

/// Nothing that panics happens under the lock, so what is in it is whole.
pub(super) fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    pub(super) fn is_empty(&self) -> bool {
        self.replacements.is_empty()
    }

    pub(super) fn record(&mut self, original: Fingerprint, replaced: Fingerprint, replacement: Replacement) {
        self.originals.insert(replaced, original);
        self.replacements.entry(original).or_default().push(replacement);
    }

    /// A walk over a conversation from its beginning.
    pub(super) fn walk(&self) -> Walk<'_> {
        Walk { ledger: self, seen: HashMap::new() }
    }
}

#[derive(Debug)]
pub(super) struct Walk<'l> {
    ledger: &'l Ledger,
    seen: HashMap<Fingerprint, usize>,
}

impl<'l> Walk<'l> {
    /// The replacement to repeat for the next slot, if this is an original that was replaced before.
    pub(super) fn next(&mut self, slot: Fingerprint) -> Option<&'l Replacement> {
        let original = self.ledger.originals.get(&slot).copied().unwrap_or(slot);
        let replacements = self.ledger.replacements.get(&original)?;
        let seen = self.seen.entry(original).or_default();
        *seen += 1;
        if original == slot { replacements.get(*seen - 1) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(text: &str) -> Fingerprint {
        Fingerprint::of_result(ResultHead { id: "call_0", name: None, is_error: false }, &[PartRef::Text(text)])
    }

    fn replacement(text: &str) -> Replacement {
        Replacement::Parts(vec![text.into()])
    }

    #[test]
    fn c13_each_occurrence_is_replaced_as_it_was() {
        let mut ledger = Ledger::default();
        ledger.record(print("same"), print("first hint"), replacement("first hint"));
        ledger.record(print("same"), print("second hint"), replacement("second hint"));
        let mut originals = ledger.walk();
        assert_eq!(originals.next(print("same")), Some(&replacement("first hint")));
        assert_eq!(originals.next(print("other")), None);
        assert_eq!(originals.next(print("same")), Some(&replacement("second hint")));
        assert_eq!(originals.next(print("same")), None, "a third one is new");
    }

    #[test]
    fn c13_a_new_result_like_a_replaced_one_is_new() {
        let mut ledger = Ledger::default();
        ledger.record(print("same"), print("first hint"), replacement("first hint"));
        let mut in_place = ledger.walk();
        assert_eq!(in_place.next(print("first hint")), None);
        assert_eq!(in_place.next(print("same")), None);
    }

    #[test]
    fn fields_do_not_run_together() {
        let two = |a, b| {
            Fingerprint::of_result(
                ResultHead { id: "", name: None, is_error: false },
                &[PartRef::Text(a), PartRef::Text(b)],
            )
        };
        assert_ne!(two("ab", "c"), two("a", "bc"));
    }
}
