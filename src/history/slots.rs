//! The results and calls of a history, each with an identity that is the same in every process.

use std::collections::HashMap;

use crate::decisions::fingerprint::{Fingerprint, PassThroughHash};
use crate::decisions::{SlotId, SlotIds};

use crate::clear::{Place, ResultPrint, part_bytes, print_of_call};
use crate::content::ToolCall;
use crate::format::{Conversation, Data, PartRef};
use crate::report::Decision;
use crate::rounds::{Age, CallSite, Outline, Slot};
use crate::tokens::{Meter, Text};

/// Digests that were computed before, by fingerprint: texts that did not change are not digested
/// again.
pub(super) type Digests = HashMap<Fingerprint, u128, PassThroughHash>;

/// The results and calls of a history.
pub(super) struct Slots<'c> {
    pub(super) outline: Outline<'c>,
    /// The results, then the calls, each in the order of the history.
    pub(super) items: Vec<HistoryItem<'c>>,
}

/// A result, or a call's arguments.
pub(super) struct HistoryItem<'c> {
    pub(super) place: Place,
    pub(super) id: SlotId,
    pub(super) tool: &'c str,
    pub(super) call_id: &'c str,
    /// The fingerprint of its content, as the clear pass takes it.
    pub(super) print: Fingerprint,
    pub(super) bytes: u64,
    /// True if the model has answered it.
    pub(super) is_answered: bool,
    /// True if it must stay as it is.
    pub(super) is_fixed: bool,
}

impl HistoryItem<'_> {
    /// A decision about the item that changes nothing yet.
    pub(super) fn decision(&self) -> Decision {
        self.place.decision(self.tool, self.call_id, self.bytes)
    }
}

impl<'c> Slots<'c> {
    pub(super) fn of(
        conversation: &'c dyn Conversation,
        meter: &Meter,
        digests: &mut Digests,
    ) -> Self {
        let outline = Outline::of(conversation);
        let mut reading = SlotReading {
            meter,
            digests,
            ids: SlotIds::default(),
        };
        let mut answered = vec![false; outline.calls.len()];
        let mut items = Vec::with_capacity(outline.slots.len() + outline.calls.len());
        for slot in &outline.slots {
            let item = reading.result(slot, outline.tool(slot), &outline);
            if let Some(call) = slot.call {
                answered[call] |= item.is_answered;
            }
            items.push(item);
        }
        for (call, is_answered) in outline.calls.iter().zip(answered) {
            items.push(reading.call(call, is_answered));
        }
        Self { outline, items }
    }

    /// The items that are results, with their slots.
    pub(super) fn results(&self) -> impl Iterator<Item = (&Slot<'c>, &HistoryItem<'c>)> {
        self.outline.slots.iter().zip(&self.items)
    }

    /// The call that a result answers, if the history has it.
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

struct SlotReading<'m> {
    meter: &'m Meter,
    digests: &'m mut Digests,
    ids: SlotIds,
}

impl SlotReading<'_> {
    fn result<'c>(
        &mut self,
        slot: &Slot<'c>,
        tool: &'c str,
        outline: &Outline<'_>,
    ) -> HistoryItem<'c> {
        let mut print = ResultPrint::new(self.meter, slot.head);
        let mut bytes = 0;
        for part in &slot.parts {
            let text = Text::of_part(*part).map(|text| self.meter.fingerprint(text));
            bytes += text.map_or_else(|| part_bytes(*part), Fingerprint::len);
            print.add(*part, text);
        }
        let print = print.finish();
        let id = self.id(print, tool, || digest_of_result(slot, tool));
        HistoryItem {
            place: Place::of(slot),
            id,
            tool,
            call_id: slot.head.id,
            print,
            bytes,
            is_answered: outline.age(slot, 0) != Age::Unanswered,
            is_fixed: slot.head.is_fixed,
        }
    }

    fn call<'c>(&mut self, site: &CallSite<'c>, is_answered: bool) -> HistoryItem<'c> {
        let call = site.call;
        let text = Text::of_arguments(call.arguments);
        let arguments = self.meter.fingerprint(text);
        let print = print_of_call(self.meter, call, arguments);
        let id = self.id(print, call.name, || {
            let fields = SlotIds::arguments(call.id, call.name);
            fields.with(b'a', text.read().as_bytes()).finish()
        });
        HistoryItem {
            place: Place::Arguments {
                message: site.message,
                call: site.index,
            },
            id,
            tool: call.name,
            call_id: call.id,
            print,
            bytes: arguments.len(),
            is_answered,
            is_fixed: call.is_fixed || call.is_signed,
        }
    }

    fn id(&mut self, print: Fingerprint, tool: &str, digest: impl FnOnce() -> u128) -> SlotId {
        let mut record = self.meter.record();
        record.known(b's', print);
        record.field(b't', tool.as_bytes());
        let digest = *self.digests.entry(record.finish()).or_insert_with(digest);
        self.ids.next(digest)
    }
}

fn digest_of_result(slot: &Slot<'_>, tool: &str) -> u128 {
    let mut fields = SlotIds::result(slot.head.id, tool);
    for part in &slot.parts {
        let kind = match part {
            PartRef::Text(_) => b't',
            PartRef::Json(_) => b'j',
            PartRef::Opaque(_) => b'o',
            PartRef::Link { mime, .. } => {
                fields = fields.with(b'm', mime.unwrap_or_default().as_bytes());
                b'l'
            }
            PartRef::Media { mime, data } => {
                fields = fields.with(b'm', mime.as_bytes());
                fields = match data {
                    Data::Base64(text) => fields.with(b'6', text.as_bytes()),
                    Data::Bytes(bytes) => fields.with(b'b', bytes),
                };
                continue;
            }
        };
        if let Some(text) = Text::of_part(*part) {
            fields = fields.with(kind, text.read().as_bytes());
        }
    }
    fields.finish()
}
