//! Decisions to repeat, for loops that pass in the original history every turn.

use std::collections::HashMap;
use std::sync::Arc;

use super::part::part_bytes;
use crate::content::Part;
use crate::decisions::fingerprint::{Fingerprint, PassThroughHash};
use crate::report::Reason;
use crate::tokens::Meter;

/// The replacement of a result or of a call's arguments.
pub(crate) type Substitute = crate::decisions::Substitute<Part>;

/// Number of bytes of a replacement.
pub(crate) fn bytes_of(put: &Substitute) -> u64 {
    match put {
        Substitute::Parts(parts) => parts.iter().map(|part| part_bytes(part.into())).sum(),
        Substitute::Arguments(text) => text.len() as u64,
    }
}

/// Number of tokens of a replacement.
pub(super) fn tokens_of(put: &Substitute, meter: &Meter) -> u64 {
    match put {
        Substitute::Parts(parts) => {
            let tokens = parts.iter().map(|part| meter.part(part.into()));
            tokens.fold(0, u64::saturating_add)
        }
        Substitute::Arguments(text) => meter.count_str(text),
    }
}

/// The decisions of one session. Among originals with the same fingerprint, the nth is replaced as
/// the nth was before.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    replacements: HashMap<Fingerprint, HashMap<usize, Arc<Substitute>>, PassThroughHash>,
    /// The original that each replacement stands for. Needed to count occurrences where originals
    /// and hints are mixed.
    originals: HashMap<Fingerprint, Fingerprint, PassThroughHash>,
    /// Final decisions: looking them up is cheaper than deciding again.
    settled: HashMap<Fingerprint, Reason, PassThroughHash>,
    /// Tokens saved since the provider counted.
    saved: Option<(Anchor, u64)>,
    /// Number of messages and of tokens that the last pass left.
    sent: Option<(usize, u64)>,
    /// True if the last pass had to read the results one by one.
    reads_items: bool,
    /// True if a report has said that passes can't help.
    has_told: bool,
}

/// A provider's token count for a request, and the index of the message that begins the assistant
/// turn answering it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) usage: u64,
    pub(super) last_turn: usize,
}

impl Ledger {
    /// Passes on the first notice of the conversation.
    pub(super) fn tell_once(&mut self, notice: Option<String>) -> Option<String> {
        let notice = notice.filter(|_| !self.has_told);
        self.has_told |= notice.is_some();
        notice
    }

    pub(super) fn has_replacements(&self) -> bool {
        !self.replacements.is_empty()
    }

    /// Returns true if `print` belongs to something replaced before, so that it may have to be
    /// replaced again.
    pub(crate) fn has_replaced(&self, print: Fingerprint) -> bool {
        self.replacements.contains_key(&print)
            && self
                .originals
                .get(&print)
                .is_none_or(|original| *original == print)
    }

    pub(super) fn record(
        &mut self,
        original: &Origin,
        replaced: Fingerprint,
        replacement: Arc<Substitute>,
    ) {
        self.originals.insert(replaced, original.print);
        self.replacements
            .entry(original.print)
            .or_default()
            .insert(original.nth, replacement);
    }

    /// Returns true if `print` belongs to a replacement.
    pub(super) fn has_put(&self, print: Fingerprint) -> bool {
        self.originals
            .get(&print)
            .is_some_and(|original| *original != print)
    }

    /// Notes that `replaced` stands for `original`, which is not passed in any more.
    pub(crate) fn note(&mut self, original: Fingerprint, replaced: Fingerprint) {
        self.originals.insert(replaced, original);
    }

    /// Takes what holds for any conversation, and leaves the decisions of this one.
    pub(crate) fn take_facts(&mut self) -> Self {
        Self {
            settled: std::mem::take(&mut self.settled),
            reads_items: self.reads_items,
            has_told: self.has_told,
            ..Self::default()
        }
    }

    /// Adds the facts of `other`.
    pub(crate) fn add_facts(&mut self, other: &mut Self) {
        let other = other.take_facts();
        self.settled.extend(other.settled);
        self.reads_items |= other.reads_items;
        self.has_told |= other.has_told;
    }

    pub(super) fn record_final(&mut self, decided: Vec<(Fingerprint, Reason)>) {
        self.settled.extend(decided);
    }

    /// Reason why an item is never replaced.
    pub(crate) fn final_reason(&self, key: Fingerprint) -> Option<Reason> {
        self.settled.get(&key).copied()
    }

    /// Returns true if the last pass read results and calls one by one: the next one likely will
    /// too.
    pub(super) fn items_were_read(&self) -> bool {
        self.reads_items
    }

    pub(super) fn record_read(&mut self, reads_items: bool) {
        self.reads_items = reads_items;
    }

    pub(super) fn record_saved(&mut self, anchor: Anchor, tokens: u64) {
        let before = self.saved_since(anchor);
        self.saved = Some((anchor, before.saturating_add(tokens)));
    }

    /// Tokens that passes have saved since the provider counted.
    pub(super) fn saved_since(&self, anchor: Anchor) -> u64 {
        self.saved
            .filter(|(known, _)| *known == anchor)
            .map_or(0, |(_, saved)| saved)
    }

    /// Records what a pass has left to be sent; `tokens` is `None` if they were not counted.
    pub(super) fn record_sent(&mut self, messages: usize, tokens: Option<u64>) {
        self.sent = tokens.map(|tokens| (messages, tokens));
    }

    /// The provider's count minus the count that a pass made of the same request.
    pub(super) fn drift(&self, anchor: Anchor) -> Option<i64> {
        let (_, tokens) = self
            .sent
            .filter(|(messages, _)| *messages == anchor.last_turn)?;
        i64::try_from(i128::from(anchor.usage) - i128::from(tokens)).ok()
    }

    /// A walk over a conversation from its beginning.
    pub(super) fn walk(&self) -> LedgerWalk<'_> {
        LedgerWalk {
            ledger: self,
            seen: HashMap::default(),
        }
    }
}

/// A slot's content, and its index (from 0) among the slots that hold or held the same content.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) print: Fingerprint,
    pub(super) nth: usize,
    /// The replacement that an earlier pass gave it.
    pub(super) replacement: Option<Arc<Substitute>>,
}

#[derive(Debug)]
pub(super) struct LedgerWalk<'l> {
    ledger: &'l Ledger,
    seen: HashMap<Fingerprint, usize, PassThroughHash>,
}

impl Origin {
    /// Fingerprint of a final decision, which depends on content, id and tool.
    pub(super) fn settles_as(&self, meter: &Meter, tool: &str) -> Fingerprint {
        settles_as(meter, self.print, tool)
    }
}

/// Fingerprint of what depends on a result's content and id, which `print` covers, and its tool.
pub(super) fn settles_as(meter: &Meter, print: Fingerprint, tool: &str) -> Fingerprint {
    let mut record = meter.record();
    record.known(b's', print);
    record.field(b't', tool.as_bytes());
    record.finish()
}

impl LedgerWalk<'_> {
    /// Returns the origin of the next slot.
    pub(super) fn next(&mut self, print: Fingerprint) -> Origin {
        let original = self.ledger.originals.get(&print).copied().unwrap_or(print);
        let seen = self.seen.entry(original).or_default();
        let nth = *seen;
        *seen += 1;
        let before = self
            .ledger
            .replacements
            .get(&original)
            .filter(|_| original == print);
        Origin {
            print,
            nth,
            replacement: before.and_then(|before| before.get(&nth)).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Estimate;

    struct Fixture {
        meter: Meter,
        ledger: Ledger,
    }

    impl Fixture {
        /// A ledger in which the `nth` of the results "same" was replaced by `text`.
        fn new(decided: &[(usize, &str)]) -> Self {
            let mut fixture = Self {
                meter: Meter::new(Arc::new(Estimate)),
                ledger: Ledger::default(),
            };
            for (nth, text) in decided {
                let original = Origin {
                    print: fixture.print("same"),
                    nth: *nth,
                    replacement: None,
                };
                let replaced = fixture.print(text);
                fixture
                    .ledger
                    .record(&original, replaced, replacement(text));
            }
            fixture
        }

        fn print(&self, text: &str) -> Fingerprint {
            self.meter.print_bytes(text.as_bytes())
        }

        fn repeated(&self, conversation: &[&str]) -> Vec<Option<Arc<Substitute>>> {
            let mut walk = self.ledger.walk();
            conversation
                .iter()
                .map(|text| walk.next(self.print(text)).replacement)
                .collect()
        }
    }

    fn replacement(text: &str) -> Arc<Substitute> {
        Arc::new(Substitute::Parts(vec![text.into()]))
    }

    #[test]
    fn c13_each_occurrence_is_replaced_as_it_was() {
        let both = Fixture::new(&[(0, "first hint"), (1, "second hint")]);
        let (first, second) = (
            Some(replacement("first hint")),
            Some(replacement("second hint")),
        );
        assert_eq!(
            both.repeated(&["same", "other", "same", "same"]),
            [first, None, second.clone(), None]
        );
        let second_alone = Fixture::new(&[(1, "second hint")]);
        assert_eq!(second_alone.repeated(&["same", "same"]), [None, second]);
    }

    #[test]
    fn c13_a_new_result_equal_to_a_replaced_one_is_new() {
        let fixture = Fixture::new(&[(0, "first hint")]);
        assert_eq!(fixture.repeated(&["first hint", "same"]), [None, None]);
    }

    #[test]
    fn the_ledger_knows_originals_and_not_their_replacements() {
        let Fixture { meter, ledger } = &Fixture::new(&[(0, "hint")]);
        let fixture = Fixture {
            meter: meter.clone(),
            ledger: Ledger::default(),
        };
        assert!(ledger.has_replaced(fixture.print("same")));
        assert!(
            !ledger.has_replaced(fixture.print("hint"))
                && !ledger.has_replaced(fixture.print("other"))
        );
    }

    #[test]
    fn saved_tokens_belong_to_one_count_of_the_provider() {
        let mut ledger = Ledger::default();
        let anchor = Anchor {
            usage: 10,
            last_turn: 4,
        };
        ledger.record_saved(anchor, 3);
        ledger.record_saved(anchor, 2);
        assert_eq!(ledger.saved_since(anchor), 5);
        assert_eq!(
            ledger.saved_since(Anchor {
                usage: 11,
                ..anchor
            }),
            0
        );
    }

    #[test]
    fn c1_drift_is_known_where_both_counted_the_same_request() {
        let mut ledger = Ledger::default();
        let anchor = Anchor {
            usage: 10,
            last_turn: 4,
        };
        assert_eq!(ledger.drift(anchor), None);
        ledger.record_sent(4, Some(12));
        assert_eq!(ledger.drift(anchor), Some(-2));
        assert_eq!(
            ledger.drift(Anchor {
                last_turn: 5,
                ..anchor
            }),
            None
        );
        assert_eq!(
            ledger.drift(Anchor {
                usage: u64::MAX,
                ..anchor
            }),
            None,
            "no provider counts that"
        );
        ledger.record_sent(4, None);
        assert_eq!(ledger.drift(anchor), None);
    }
}
