//! Reads the results, calls and users' texts of a conversation.

use super::memory::{Grounds, Known};
use super::place::{Place, ResultPrint, print_of_call, print_of_text};
use crate::content::ToolCall;
use crate::decisions::Substitute;
use crate::fingerprint::{Fingerprint, SlotId, SlotIds};
use crate::format::{Conversation, PartRef};
use crate::report::{Change, Decision};
use crate::rounds::{CallSite, Outline, Slot, UserText};
use crate::tokens::{Meter, Text, media_cost};

/// The results, calls and users' texts of a conversation.
pub(crate) struct Slots<'c> {
    pub(crate) outline: Outline<'c>,
    /// One for each slot of the outline.
    pub(crate) results: Vec<Item<'c>>,
    /// One for the arguments of each call of the outline.
    pub(crate) calls: Vec<Item<'c>>,
    /// One for each text of the outline.
    pub(crate) texts: Vec<Item<'c>>,
}

/// A result, a call's arguments, or a user's text.
pub(crate) struct Item<'c> {
    pub(crate) place: Place,
    pub(crate) tool: &'c str,
    pub(crate) call_id: &'c str,
    pub(crate) grounds: Grounds,
    /// The identity of its original, which is the same in every process.
    pub(crate) id: SlotId,
    pub(crate) bytes: u64,
    /// `None` where tokens are not counted.
    pub(crate) tokens: Option<u64>,
    /// True if the model has answered it.
    pub(crate) is_answered: bool,
    /// True if it must stay as it is.
    pub(crate) is_fixed: bool,
}

impl Item<'_> {
    /// A decision about the item that changes nothing yet.
    pub(crate) fn decision(&self) -> Decision {
        let mut decision = self.place.decision(self.tool, self.call_id, self.bytes);
        decision.tokens = self.tokens.map(Change::none);
        decision
    }
}

impl<'c> Slots<'c> {
    /// Reads `conversation`. Tokens are counted with `meter`, if there is one.
    pub(crate) fn of(
        conversation: &'c dyn Conversation,
        known: &Known,
        meter: Option<&Meter>,
    ) -> Self {
        let outline = Outline::of(conversation);
        let mut reading = Reading {
            known,
            meter,
            ids: SlotIds::default(),
        };
        let mut answered = vec![false; outline.calls.len()];
        let mut results = Vec::with_capacity(outline.slots.len());
        for slot in &outline.slots {
            let item = reading.result(slot, &outline);
            if let Some(call) = slot.call {
                answered[call] |= item.is_answered;
            }
            results.push(item);
        }
        let calls = outline.calls.iter().zip(answered);
        let calls = calls.map(|(call, is_answered)| reading.call(call, is_answered));
        let calls: Vec<Item<'_>> = calls.collect();
        for (slot, result) in outline.slots.iter().zip(&mut results) {
            result.grounds.call = slot.call.map(|call| calls[call].grounds.print);
        }
        let texts = outline.texts.iter();
        let texts = texts.map(|text| reading.text(text, conversation)).collect();
        Self {
            calls,
            results,
            texts,
            outline,
        }
    }

    /// The results, with their slots.
    pub(crate) fn results(&self) -> impl Iterator<Item = (&Slot<'c>, &Item<'c>)> {
        self.outline.slots.iter().zip(&self.results)
    }

    /// The results, then the calls, then the users' texts.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item<'c>> {
        self.results.iter().chain(&self.calls).chain(&self.texts)
    }

    /// The call that a result answers, if the conversation has it.
    pub(crate) fn call_of(&self, slot: &Slot<'_>) -> ToolCall {
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

struct Reading<'m> {
    known: &'m Known,
    meter: Option<&'m Meter>,
    ids: SlotIds,
}

impl Reading<'_> {
    fn result<'c>(&mut self, slot: &Slot<'c>, outline: &Outline<'c>) -> Item<'c> {
        let mut print = ResultPrint::new(slot.head);
        let (mut bytes, mut tokens) = (0, self.meter.map(|_| 0_u64));
        for part in &slot.parts {
            let text = print.add(*part);
            bytes += text.map_or_else(|| part_bytes(*part), Fingerprint::bytes);
            if let (Some(meter), Some(sum)) = (self.meter, &mut tokens) {
                let texts = text.zip(Text::of_part(*part));
                let of_text = texts.map_or(0, |(print, text)| meter.count(print, text));
                *sum = sum
                    .saturating_add(media_cost(*part))
                    .saturating_add(of_text);
            }
        }
        let names = [outline.tool(slot), slot.head.id];
        let mut item = self.item(Place::of(slot), names, print.finish(), bytes, tokens);
        item.grounds.is_error = slot.head.is_error;
        item.is_answered = slot.is_answered;
        item.is_fixed = slot.head.is_fixed;
        item
    }

    fn call<'c>(&mut self, site: &CallSite<'c>, is_answered: bool) -> Item<'c> {
        let call = site.call;
        let text = Text::of_arguments(call.arguments);
        let arguments = text.fingerprint();
        let place = Place::Arguments {
            message: site.message,
            call: site.index,
        };
        let (print, tokens) = (
            print_of_call(call, arguments),
            self.meter.map(|meter| meter.count(arguments, text)),
        );
        let names = [call.name, call.id];
        Item {
            is_answered,
            is_fixed: call.is_fixed || call.is_signed,
            ..self.item(place, names, print, arguments.bytes(), tokens)
        }
    }

    fn text<'c>(&mut self, text: &UserText<'c>, conversation: &dyn Conversation) -> Item<'c> {
        let content = Text::Is(text.text);
        let of_text = content.fingerprint();
        let place = Place::UserText {
            message: text.message,
            text: text.index,
        };
        let (print, tokens) = (
            print_of_text(of_text),
            self.meter.map(|meter| meter.count(of_text, content)),
        );
        Item {
            is_answered: text.is_answered,
            is_fixed: text.is_fixed || !conversation.has_text(text.message, text.index),
            ..self.item(place, [""; 2], print, of_text.bytes(), tokens)
        }
    }

    /// An item with the names of its tool and its call.
    fn item<'c>(
        &mut self,
        place: Place,
        [tool, call_id]: [&'c str; 2],
        print: Fingerprint,
        bytes: u64,
        tokens: Option<u64>,
    ) -> Item<'c> {
        Item {
            place,
            tool,
            call_id,
            grounds: Grounds {
                print,
                call: None,
                is_error: false,
            },
            id: self.ids.next(self.known.original_of(print.digest())),
            bytes,
            tokens,
            is_answered: false,
            is_fixed: false,
        }
    }
}

/// Number of bytes of a part's content.
fn part_bytes(part: PartRef<'_>) -> u64 {
    match part {
        PartRef::Media { data, .. } => data.decoded_len(),
        part => Text::of_part(part).map_or(0, Text::bytes),
    }
}

/// Number of bytes of a replacement.
pub(crate) fn bytes_of(put: &Substitute) -> u64 {
    match put {
        Substitute::Parts(parts) => parts.iter().map(|part| part_bytes(part.into())).sum(),
        Substitute::Arguments(text) => text.len() as u64,
    }
}

/// Number of tokens of a replacement.
pub(crate) fn tokens_of(put: &Substitute, meter: &Meter) -> u64 {
    match put {
        Substitute::Parts(parts) => {
            let tokens = parts.iter().map(|part| meter.part(part.into()));
            tokens.fold(0, u64::saturating_add)
        }
        Substitute::Arguments(text) => meter.count_str(text),
    }
}
