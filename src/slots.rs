//! The results, calls and users' texts of a conversation: their identities, what is shown in their place, and the memory of
//! what was decided about them.

mod memory;
mod overlay;

use std::collections::{HashMap, HashSet};

use crate::config::Policy;
use crate::content::{Part, ToolCall};
use crate::fingerprint::{FieldPrint, Fingerprint, SlotId};
use crate::format::{Call, Conversation, Data, PartRef};
use crate::rounds::read;
use crate::tokens::{Meter, PER_MESSAGE, Text};

pub(crate) use crate::format::Place;
pub(crate) use crate::rounds::{Grounds, Item, ItemContent};
pub(crate) use memory::{Anchor, Known, Memory};
pub(crate) use overlay::{Overlay, Puts, apply, repeat};

/// The results, calls and users' texts of a conversation, in order, and what else the model's context has.
pub(crate) struct Slots<'c> {
    pub(crate) items: Vec<Item<'c>>,
    others: Vec<Text<'c>>,
    /// Number of messages of the model's context.
    messages: u64,
}

impl<'c> Slots<'c> {
    /// Reads `conversation` from the message with index `from` on. Some items stand for `originals`: the slots of
    /// those, by their own digests. A copy of such an item stands for itself. Counts no tokens.
    pub(crate) fn of(
        conversation: &'c dyn Conversation,
        from: usize,
        originals: &HashMap<u128, Vec<SlotId>>,
    ) -> Self {
        let mut read = read(conversation, from);
        let items = &mut read.items;
        let (mut seen, mut call_ids) = (HashMap::<u128, u32>::new(), HashSet::new());
        for at in 0..items.len() {
            let texts = items[at].content.texts();
            let (print, bytes) = identity(&items[at].content, &texts);
            let (call, is_error) = match items[at].content {
                ItemContent::Result { head, call, .. } => (call, head.is_error),
                _ => (None, false),
            };
            // A call comes before its result.
            let call = call.map(|call| items[call].grounds.print);
            let item = &mut items[at];
            (item.bytes, item.texts) = (bytes, texts);
            item.grounds = Grounds {
                print,
                call,
                is_error,
            };
            let next = |digest: u128| seen.get(&digest).copied().unwrap_or_default();
            let mut replaced = originals.get(&print).into_iter().flatten();
            let replaced = replaced.find(|slot| slot.nth == next(slot.digest));
            item.id = replaced.copied().unwrap_or_else(|| SlotId {
                digest: print,
                nth: next(print),
            });
            seen.insert(item.id.digest, item.id.nth.saturating_add(1));
            match item.content {
                ItemContent::Result { .. } => item.repeats_id = !call_ids.insert(item.call_id),
                ItemContent::Call(_) => {}
                ItemContent::Text(_) => {
                    item.is_fixed |= !conversation.has_text(item.place.message, item.place.index);
                }
            }
        }
        Self {
            items: read.items,
            others: read.others.into_iter().map(Text::from).collect(),
            messages: (conversation.len() - read.first) as u64,
        }
    }

    /// The tokens that messages cost besides their content.
    pub(crate) fn overhead(&self) -> u64 {
        self.messages.saturating_mul(PER_MESSAGE)
    }

    /// The texts and media of the model's context.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Text<'c>> {
        let items = self.items.iter().filter(|item| item.counts);
        items.flat_map(|item| &item.texts).chain(&self.others)
    }

    /// Counts the tokens of each item.
    pub(crate) fn counted(mut self, meter: &Meter) -> Self {
        for item in &mut self.items {
            item.tokens = Some(meter.sum(item.texts.iter()));
        }
        self
    }

    /// The results.
    pub(crate) fn results(&self) -> impl DoubleEndedIterator<Item = &Item<'c>> {
        let items = self.items.iter();
        items.filter(|item| matches!(item.content, ItemContent::Result { .. }))
    }

    /// The items by their places.
    pub(crate) fn by_place(&self) -> HashMap<Place, &Item<'c>> {
        self.items.iter().map(|item| (item.place, item)).collect()
    }

    /// The call that a result answers, if the conversation has it, and its item.
    pub(crate) fn call(&self, result: &Item<'_>) -> Option<(&Item<'c>, Call<'c>)> {
        let ItemContent::Result { call: Some(at), .. } = result.content else {
            return None;
        };
        match &self.items[at] {
            item @ Item {
                content: ItemContent::Call(call),
                ..
            } => Some((item, *call)),
            _ => None,
        }
    }

    /// The call that a result answers, with the arguments that the conversation has.
    pub(crate) fn call_of(&self, result: &Item<'_>) -> ToolCall {
        let arguments = self.call(result).map(|(_, call)| call.arguments.text());
        ToolCall::new(result.call_id, result.tool, arguments.unwrap_or_default())
    }
}

/// The fingerprint of an item with these `texts`, which covers everything that matters, and the number of bytes of its
/// content: two results with equal ones hold the same bytes under the same id.
fn identity(content: &ItemContent<'_>, texts: &[Text<'_>]) -> (Fingerprint, u64) {
    let (kind, id, name) = match content {
        ItemContent::Result { head, .. } => (b'r', head.id, head.name),
        ItemContent::Call(call) => (b'c', call.id, Some(call.name)),
        ItemContent::Text(_) => (b'u', "", None),
    };
    let mut print = FieldPrint::new(kind, id.as_bytes());
    if kind != b'u' {
        print.add(b'n', name.unwrap_or_default().as_bytes());
    }
    let mut bytes = 0;
    let parts = content.parts().iter().copied().map(Some);
    for (part, text) in parts.chain([None]).zip(texts) {
        let kind = match part {
            // The arguments of a call.
            None => b'a',
            Some(PartRef::Text(_)) => b't',
            Some(PartRef::Json(_)) => b'j',
            Some(PartRef::Opaque(_)) => b'o',
            Some(PartRef::Link { mime, .. }) => {
                print.add(b'm', mime.unwrap_or_default().as_bytes());
                b'l'
            }
            Some(PartRef::Media { mime, data }) => {
                print.add(b'm', mime.as_bytes());
                match data {
                    Data::Base64(text) => print.add(b'6', text.as_bytes()),
                    Data::Bytes(bytes) => print.add(b'b', bytes),
                }
                bytes += data.decoded_len();
                continue;
            }
        };
        print.add_print(kind, text.bytes(), text.print.unwrap_or_default());
        bytes += text.bytes();
    }
    (print.finish(), bytes)
}

/// A part of a result as a value, JSON over the limit as the text that is stored; `None` for media that can't be written
/// again as they are.
pub(crate) fn original(policy: &Policy, part: PartRef<'_>) -> Option<Part> {
    match part {
        PartRef::Media { data, .. } if data.decode().is_none() => None,
        PartRef::Json(json) if json.text().len() > policy.max_length_for_trunc => {
            Some(json.text().into_owned().into())
        }
        part => Some(part.into()),
    }
}

/// Number of bytes of a replacement.
pub(crate) fn bytes_of(put: &[Part]) -> u64 {
    let bytes = put.iter().map(|part| match PartRef::from(part) {
        PartRef::Media { data, .. } => data.decoded_len(),
        part => Text::from(part).bytes(),
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ResultHead;

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
                let content = ItemContent::Result {
                    head: ResultHead {
                        id,
                        name,
                        ..ResultHead::default()
                    },
                    parts: list.to_vec(),
                    call: None,
                };
                let (print, _) = identity(&content, &content.texts());
                assert!(seen.insert(print), "{id:?} {list:?}");
            }
        }
    }
}
