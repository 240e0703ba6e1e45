//! What the results and calls of a conversation are, and how large: the second look, where something may have to be done.

use super::ledger::{Ledger, Origin, ResultPrint, Walk, print_of_call};
use crate::fingerprint::Fingerprint;
use crate::format::{Conversation, PartRef};
use crate::rounds::{CallSite, Outline, Slot};
use crate::tokens::{Meter, Text, media_cost};

/// All results and calls of a conversation, and what each of them is.
pub(super) struct All<'c> {
    pub(super) outline: Outline<'c>,
    pub(super) results: Vec<Known>,
    pub(super) calls: Vec<Known>,
}

/// What is known of a result's content, or of a call's arguments.
pub(super) struct Known {
    pub(super) original: Origin,
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

impl<'c> All<'c> {
    pub(super) fn of(conversation: &'c dyn Conversation, meter: &Meter, ledger: &Ledger) -> Self {
        let (outline, mut walk) = (Outline::of(conversation), ledger.walk());
        let results = outline.slots.iter().map(|slot| Known::of_result(slot, meter, &mut walk)).collect();
        let calls = outline.calls.iter().map(|call| Known::of_call(call, meter, &mut walk)).collect();
        Self { outline, results, calls }
    }
}

impl Known {
    /// Each text is hashed once, for both: what it costs and what the result is known by.
    fn of_result(slot: &Slot<'_>, meter: &Meter, walk: &mut Walk<'_>) -> Self {
        let mut print = ResultPrint::of(meter, slot.head);
        let (mut bytes, mut tokens) = (0, 0);
        for part in &slot.parts {
            let text = Text::of_part(*part).map(|text| (meter.print(text), text));
            print.add(*part, text.map(|(print, _)| print));
            tokens += media_cost(*part) + text.map_or(0, |(print, text)| meter.count(print, text));
            bytes += part_bytes(*part);
        }
        Self { original: walk.next(print.finish()), bytes, tokens }
    }

    /// What a decision about it is known by that holds for good: it depends on the content, the id and the tool.
    pub(super) fn settles_as(&self, meter: &Meter, tool: &str) -> Fingerprint {
        let mut stream = meter.stream();
        stream.known(b's', self.original.print);
        stream.field(b't', tool.as_bytes());
        stream.finish()
    }

    fn of_call(call: &CallSite<'_>, meter: &Meter, walk: &mut Walk<'_>) -> Self {
        let arguments = Text::of_arguments(call.is.arguments);
        let print = meter.print(arguments);
        let original = walk.next(print_of_call(meter, call.is, print));
        Self { original, bytes: print.len(), tokens: meter.count(print, arguments) }
    }
}

/// The bytes of content that a part is.
pub(super) fn part_bytes(part: PartRef<'_>) -> u64 {
    match part {
        PartRef::Media { data, .. } => data.decoded_len(),
        part => Text::of_part(part).map_or(0, Text::bytes),
    }
}
