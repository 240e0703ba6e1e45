//! Decisions to repeat, for loops that hand in the original history every turn.

use std::collections::{HashMap, HashSet};
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

/// What one session decided: the n-th original of a fingerprint is replaced as the n-th one was before.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    replacements: HashMap<Fingerprint, HashMap<usize, Replacement>>,
    /// Which original a replacement stands for, so that occurrences are counted right where originals and hints are mixed.
    originals: HashMap<Fingerprint, Fingerprint>,
    /// What looks like a hint of ours and is not: it need not be compared again.
    unverified: HashSet<Fingerprint>,
    /// What was saved since the provider counted.
    saved: Option<(Anchor, u64)>,
}

/// A count of the provider's, and where the assistant turn begins that answered the request it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) usage: u64,
    pub(super) last_turn: usize,
}

/// Nothing that panics happens under the lock, so what is in it is whole.
pub(super) fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    pub(super) fn has_replacements(&self) -> bool {
        !self.replacements.is_empty()
    }

    pub(super) fn record(&mut self, original: &Origin, replaced: Fingerprint, replacement: Replacement) {
        self.originals.insert(replaced, original.print);
        self.replacements.entry(original.print).or_default().insert(original.nth, replacement);
    }

    pub(super) fn record_unverified(&mut self, print: Fingerprint) {
        self.unverified.insert(print);
    }

    pub(super) fn is_unverified(&self, print: Fingerprint) -> bool {
        self.unverified.contains(&print)
    }

    pub(super) fn record_saved(&mut self, anchor: Anchor, tokens: u64) {
        let before = self.saved_since(anchor);
        self.saved = Some((anchor, before + tokens));
    }

    /// The tokens that passes have saved since the provider's count was made.
    pub(super) fn saved_since(&self, anchor: Anchor) -> u64 {
        self.saved.filter(|(known, _)| *known == anchor).map_or(0, |(_, saved)| saved)
    }

    /// A walk over a conversation from its beginning.
    pub(super) fn walk(&self) -> Walk<'_> {
        Walk { ledger: self, seen: HashMap::new() }
    }
}

/// What a slot holds, and which of those that hold or held the same it is, counted from 0.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) print: Fingerprint,
    pub(super) nth: usize,
    /// What it was replaced by before.
    pub(super) replacement: Option<Replacement>,
}

#[derive(Debug)]
pub(super) struct Walk<'l> {
    ledger: &'l Ledger,
    seen: HashMap<Fingerprint, usize>,
}

impl Walk<'_> {
    /// The origin of the next slot.
    pub(super) fn next(&mut self, print: Fingerprint) -> Origin {
        let original = self.ledger.originals.get(&print).copied().unwrap_or(print);
        let seen = self.seen.entry(original).or_default();
        let nth = *seen;
        *seen += 1;
        let before = self.ledger.replacements.get(&original).filter(|_| original == print);
        Origin { print, nth, replacement: before.and_then(|before| before.get(&nth)).cloned() }
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

    /// A ledger in which the `nth` of the results "same" was replaced by `text`.
    fn ledger(decided: &[(usize, &str)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (nth, text) in decided {
            let original = Origin { print: print("same"), nth: *nth, replacement: None };
            ledger.record(&original, print(text), replacement(text));
        }
        ledger
    }

    fn repeated(ledger: &Ledger, conversation: &[&str]) -> Vec<Option<Replacement>> {
        let mut walk = ledger.walk();
        conversation.iter().map(|text| walk.next(print(text)).replacement).collect()
    }

    #[test]
    fn c13_each_occurrence_is_replaced_as_it_was() {
        let both = ledger(&[(0, "first hint"), (1, "second hint")]);
        let (first, second) = (Some(replacement("first hint")), Some(replacement("second hint")));
        assert_eq!(repeated(&both, &["same", "other", "same", "same"]), [first, None, second.clone(), None]);
        let second_alone = ledger(&[(1, "second hint")]);
        assert_eq!(repeated(&second_alone, &["same", "same"]), [None, second]);
    }

    #[test]
    fn c13_a_new_result_like_a_replaced_one_is_new() {
        assert_eq!(repeated(&ledger(&[(0, "first hint")]), &["first hint", "same"]), [None, None]);
    }

    #[test]
    fn what_was_saved_counts_for_one_count_of_the_provider() {
        let mut ledger = Ledger::default();
        let anchor = Anchor { usage: 10, last_turn: 4 };
        ledger.record_saved(anchor, 3);
        ledger.record_saved(anchor, 2);
        assert_eq!(ledger.saved_since(anchor), 5);
        assert_eq!(ledger.saved_since(Anchor { usage: 11, ..anchor }), 0);
    }

    #[test]
    fn fields_do_not_run_together() {
        let head = ResultHead { id: "", name: None, is_error: false };
        let two = |a, b| Fingerprint::of_result(head, &[PartRef::Text(a), PartRef::Text(b)]);
        assert_ne!(two("ab", "c"), two("a", "bc"));
    }
}
