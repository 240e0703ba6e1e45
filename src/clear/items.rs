//! The results and calls of a conversation, and the cost of each.

use std::sync::Arc;

use super::ledger::{Ledger, LedgerWalk, Origin, Substitute};
use super::part::part_bytes;
use super::print::{Place, ResultPrint, print_of_call};
use crate::content::ToolCall;
use crate::decisions::fingerprint::Fingerprint;
use crate::report::{Change, Decision};
use crate::rounds::{CallSite, Outline, Slot};
use crate::tokens::{Meter, Text, media_cost};

/// The results and calls of a conversation, and the cost of each.
pub(super) struct Items<'c> {
    pub(super) outline: Outline<'c>,
    /// One for each slot of the outline.
    pub(super) results: Vec<Item<'c>>,
    /// One for the arguments of each call of the outline.
    pub(super) calls: Vec<Item<'c>>,
}

/// A result, or a call's arguments.
pub(super) struct Item<'c> {
    pub(super) place: Place,
    pub(super) tool: &'c str,
    pub(super) call_id: &'c str,
    pub(super) origin: Origin,
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

impl Item<'_> {
    /// A decision about the item that changes nothing yet.
    pub(super) fn decision(&self) -> Decision {
        let mut decision = self.place.decision(self.tool, self.call_id, self.bytes);
        decision.tokens = Some(Change::none(self.tokens));
        decision
    }

    /// Fingerprint of a final decision, which depends on content, id and tool.
    pub(super) fn settles_as(&self, meter: &Meter) -> Fingerprint {
        self.origin.settles_as(meter, self.tool)
    }

    /// The replacement that an earlier pass gave it.
    pub(super) fn replacement(&self) -> Option<&Arc<Substitute>> {
        self.origin.replacement.as_ref()
    }
}

impl<'c> Items<'c> {
    /// Reads the items of `outline`, whose texts have these fingerprints, if they are known.
    pub(super) fn of(outline: Outline<'c>, meter: &Meter, ledger: &Ledger, prints: Prints) -> Self {
        let mut texts = Texts {
            meter,
            walk: ledger.walk(),
            prints: prints.results.into_iter(),
        };
        let result = |slot| texts.result(slot, outline.tool(slot));
        let results = outline.slots.iter().map(result).collect();
        texts.prints = prints.arguments.into_iter();
        let calls = outline.calls.iter().map(|call| texts.call(call)).collect();
        Self {
            outline,
            results,
            calls,
        }
    }

    /// The call that a result answers, if the conversation has it.
    pub(super) fn call_of(&self, slot: &Slot<'_>) -> ToolCall {
        let arguments = slot
            .call
            .map(|call| Text::of_arguments(self.outline.calls[call].call.arguments).read());
        ToolCall::new(
            slot.head.id,
            self.outline.tool(slot),
            arguments.unwrap_or_default(),
        )
    }
}

/// Fingerprints of the texts of all results, and of the arguments of all calls, in order: either none or one for
/// each.
#[derive(Debug, Default)]
pub(super) struct Prints {
    pub(super) results: Vec<Fingerprint>,
    pub(super) arguments: Vec<Fingerprint>,
}

impl Prints {
    /// Room for `each` results, and as many calls.
    pub(super) fn with_capacity(each: usize) -> Self {
        Self {
            results: Vec::with_capacity(each),
            arguments: Vec::with_capacity(each),
        }
    }
}

/// The texts of results or of arguments, one after the other.
struct Texts<'m> {
    meter: &'m Meter,
    walk: LedgerWalk<'m>,
    prints: std::vec::IntoIter<Fingerprint>,
}

impl Texts<'_> {
    /// Returns the fingerprint and the tokens of the next text.
    fn next(&mut self, text: Text<'_>) -> (Fingerprint, u64) {
        let print = self.prints.next();
        let print = print.unwrap_or_else(|| self.meter.fingerprint(text));
        debug_assert_eq!(
            print,
            self.meter.fingerprint(text),
            "a format must show unchanged messages the same way each time"
        );
        (print, self.meter.count(print, text))
    }

    fn result<'c>(&mut self, slot: &Slot<'c>, tool: &'c str) -> Item<'c> {
        let mut print = ResultPrint::new(self.meter, slot.head);
        let (mut bytes, mut tokens) = (0, 0_u64);
        for part in &slot.parts {
            let text = Text::of_part(*part).map(|text| self.next(text));
            print.add(*part, text.map(|(print, _)| print));
            let cost = media_cost(*part).saturating_add(text.map_or(0, |(_, tokens)| tokens));
            tokens = cost.saturating_add(tokens);
            bytes += text.map_or_else(|| part_bytes(*part), |(print, _)| print.len());
        }
        Item {
            place: Place::of(slot),
            tool,
            call_id: slot.head.id,
            origin: self.walk.next(print.finish()),
            bytes,
            tokens,
        }
    }

    fn call<'c>(&mut self, call: &CallSite<'c>) -> Item<'c> {
        let (print, tokens) = self.next(Text::of_arguments(call.call.arguments));
        Item {
            place: Place::Arguments {
                message: call.message,
                call: call.index,
            },
            tool: call.call.name,
            call_id: call.call.id,
            origin: self.walk.next(print_of_call(self.meter, call.call, print)),
            bytes: print.len(),
            tokens,
        }
    }
}
