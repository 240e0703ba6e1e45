//! Reads the results, calls and users' texts of a conversation.

use std::collections::HashMap;

use crate::content::ToolCall;
use crate::decisions::Substitute;
use crate::fingerprint::{FieldPrint, Fingerprint, SlotId, SlotIds, fingerprint};
use crate::format::{Conversation, Data, PartRef, Place, ResultHead};
use crate::report::{Change, Decision};
use crate::rounds::{CallSite, Outline, Slot, UserText};
use crate::tokens::{Meter, Text};

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

/// All that a decision about an item may look at. Two calls may have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grounds {
    /// The fingerprint of its id and content.
    pub(crate) print: Fingerprint,
    /// The fingerprint of the call that a result answers, if the conversation has it.
    pub(crate) call: Option<Fingerprint>,
    pub(crate) is_error: bool,
}

impl Item<'_> {
    /// A decision about the item that changes nothing yet.
    pub(crate) fn decision(&self) -> Decision {
        let Place {
            message, subject, ..
        } = self.place;
        let mut decision = Decision::new(subject, self.tool, self.call_id, self.bytes);
        decision.message = Some(message);
        decision.tokens = self.tokens.map(Change::none);
        decision
    }
}

impl<'c> Slots<'c> {
    /// Reads `conversation`, in which some items stand for `originals`: the digests of those, by their own. Counts
    /// no tokens.
    pub(crate) fn of(conversation: &'c dyn Conversation, originals: &HashMap<u128, u128>) -> Self {
        let outline = Outline::of(conversation);
        let mut reading = Reading {
            originals,
            ids: SlotIds::default(),
        };
        let mut answered = vec![false; outline.calls.len()];
        for slot in &outline.slots {
            if let Some(call) = slot.call {
                answered[call] |= outline.is_answered(slot.turn);
            }
        }
        let calls = outline.calls.iter().zip(answered);
        let calls = calls.map(|(call, is_answered)| reading.call(call, is_answered));
        let calls: Vec<Item<'_>> = calls.collect();
        let results = outline.slots.iter();
        let results = results.map(|slot| reading.result(slot, &outline, &calls));
        let results = results.collect();
        let texts = outline.texts.iter();
        let texts = texts.map(|text| reading.text(text, &outline, conversation));
        let texts = texts.collect();
        Self {
            calls,
            results,
            texts,
            outline,
        }
    }

    /// Counts the tokens of all items.
    pub(crate) fn counted(mut self, meter: &Meter) -> Self {
        for (slot, item) in self.outline.slots.iter().zip(&mut self.results) {
            item.tokens = Some(meter.parts(slot.parts.iter().copied()));
        }
        for (site, item) in self.outline.calls.iter().zip(&mut self.calls) {
            item.tokens = Some(meter.count_str(&site.call.arguments.text()));
        }
        for (text, item) in self.outline.texts.iter().zip(&mut self.texts) {
            item.tokens = Some(meter.count_str(text.text));
        }
        self
    }

    /// The results, with their slots.
    pub(crate) fn results(&self) -> impl Iterator<Item = (&Slot<'c>, &Item<'c>)> {
        self.outline.slots.iter().zip(&self.results)
    }

    /// The results, then the calls, then the users' texts.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item<'c>> {
        self.results.iter().chain(&self.calls).chain(&self.texts)
    }

    /// The items by their places.
    pub(crate) fn by_place(&self) -> HashMap<Place, &Item<'c>> {
        self.items().map(|item| (item.place, item)).collect()
    }

    /// The call that a result answers, if the conversation has it.
    pub(crate) fn call_of(&self, slot: &Slot<'_>) -> ToolCall {
        let arguments = slot
            .call
            .map(|call| self.outline.calls[call].call.arguments.text());
        ToolCall::new(slot.head.id, slot.tool, arguments.unwrap_or_default())
    }
}

struct Reading<'o> {
    originals: &'o HashMap<u128, u128>,
    ids: SlotIds,
}

impl Reading<'_> {
    fn result<'c>(
        &mut self,
        slot: &Slot<'c>,
        outline: &Outline<'c>,
        calls: &[Item<'c>],
    ) -> Item<'c> {
        let mut print = print_of_head(slot.head);
        let parts = slot.parts.iter();
        let bytes = parts.map(|part| add_part(&mut print, *part)).sum();
        let mut item = self.item(slot.place, [slot.tool, slot.head.id], print, bytes);
        item.grounds.call = slot.call.map(|call| calls[call].grounds.print);
        item.grounds.is_error = slot.head.is_error;
        item.is_answered = outline.is_answered(slot.turn);
        item.is_fixed = slot.head.is_fixed;
        item
    }

    fn call<'c>(&mut self, site: &CallSite<'c>, is_answered: bool) -> Item<'c> {
        let call = site.call;
        let arguments = call.arguments.text();
        let bytes = arguments.len() as u64;
        let mut print = FieldPrint::new(b'c', call.id.as_bytes());
        print.add(b'n', call.name.as_bytes());
        print.add_print(b'a', bytes, fingerprint(arguments.as_bytes()));
        Item {
            is_answered,
            is_fixed: call.is_fixed || call.is_signed,
            ..self.item(site.place, [call.name, call.id], print, bytes)
        }
    }

    fn text<'c>(
        &mut self,
        text: &UserText<'c>,
        outline: &Outline<'c>,
        conversation: &dyn Conversation,
    ) -> Item<'c> {
        let Place { message, index, .. } = text.place;
        let mut print = FieldPrint::new(b'u', b"");
        let bytes = text.text.len() as u64;
        print.add_print(b't', bytes, fingerprint(text.text.as_bytes()));
        Item {
            is_answered: outline.is_answered(text.turn),
            is_fixed: text.is_fixed || !conversation.has_text(message, index),
            ..self.item(text.place, [""; 2], print, bytes)
        }
    }

    /// An item with the names of its tool and its call.
    fn item<'c>(
        &mut self,
        place: Place,
        [tool, call_id]: [&'c str; 2],
        print: FieldPrint,
        bytes: u64,
    ) -> Item<'c> {
        let print = print.finish();
        let original = self.originals.get(&print).copied();
        Item {
            place,
            tool,
            call_id,
            grounds: Grounds {
                print,
                call: None,
                is_error: false,
            },
            id: self.ids.next(original.unwrap_or(print)),
            bytes,
            tokens: None,
            is_answered: false,
            is_fixed: false,
        }
    }
}

/// Begins the fingerprint of a result, which covers everything that matters: two results with equal ones hold the
/// same bytes under the same id.
fn print_of_head(head: ResultHead<'_>) -> FieldPrint {
    let mut print = FieldPrint::new(b'r', head.id.as_bytes());
    print.add(b'n', head.name.unwrap_or_default().as_bytes());
    print
}

/// Adds the next part to the fingerprint of a result. Returns the number of bytes of its content.
fn add_part(print: &mut FieldPrint, part: PartRef<'_>) -> u64 {
    let kind = match part {
        PartRef::Text(_) => b't',
        PartRef::Json(_) => b'j',
        PartRef::Opaque(_) => b'o',
        PartRef::Media { mime, data } => {
            print.add(b'm', mime.as_bytes());
            match data {
                Data::Base64(text) => print.add(b'6', text.as_bytes()),
                Data::Bytes(bytes) => print.add(b'b', bytes),
            }
            return data.decoded_len();
        }
        PartRef::Link { mime, .. } => {
            print.add(b'm', mime.unwrap_or_default().as_bytes());
            b'l'
        }
    };
    Text::of_part(part).map_or(0, |text| {
        print.add_print(kind, text.bytes(), text.fingerprint());
        text.bytes()
    })
}

/// Number of bytes of a part's content.
fn part_bytes(part: PartRef<'_>) -> u64 {
    match part {
        PartRef::Media { data, .. } => data.decoded_len(),
        part => Text::of_part(part).map_or(0, |text| text.bytes()),
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
        Substitute::Parts(parts) => meter.parts(parts.iter().map(PartRef::from)),
        Substitute::Arguments(text) => meter.count_str(text),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn results_with_other_parts_have_other_fingerprints() {
        let text = serde_json::json!("a");
        let png = |mime| PartRef::Media {
            mime,
            data: Data::Base64("AA=="),
        };
        let link = |mime, url| PartRef::Link { mime, url };
        let lists: [&[PartRef<'_>]; 12] = [
            &[],
            &[PartRef::Text("ab"), PartRef::Text("c")],
            &[PartRef::Text("a"), PartRef::Text("bc")],
            &[PartRef::Text("abc")],
            &[PartRef::Text("\"a\"")],
            &[PartRef::Json((&text).into())],
            &[PartRef::Opaque((&text).into())],
            &[png("image/png")],
            &[png("image/gif")],
            &[link(None, "u")],
            &[link(Some("m"), "u")],
            &[link(None, "v")],
        ];
        let mut seen = HashSet::new();
        for (id, name) in [("", None), ("a", None), ("", Some("a"))] {
            for list in lists {
                let head = ResultHead {
                    id,
                    name,
                    ..ResultHead::default()
                };
                let mut print = print_of_head(head);
                for part in list {
                    add_part(&mut print, *part);
                }
                assert!(seen.insert(print.finish()), "{id:?} {list:?}");
            }
        }
    }
}
