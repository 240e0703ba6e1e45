//! The results, calls and users' texts of a conversation: their identities, what is shown in their place, and the memory of
//! what was decided about them.

mod memory;
mod overlay;

use std::collections::HashMap;

use crate::config::Policy;
use crate::content::{Part, ToolCall};
use crate::fingerprint::{FieldPrint, Fingerprint, SlotIds, fingerprint};
use crate::format::{Call, Conversation, Data, PartRef};
use crate::rounds::items;
use crate::tokens::{Meter, Text};

pub(crate) use crate::format::Place;
pub(crate) use crate::rounds::{Grounds, Item, ItemContent};
pub(crate) use memory::{Anchor, Known, Memory};
pub(crate) use overlay::{Overlay, Puts, Repeated, repeat};

/// The results, calls and users' texts of a conversation, in order.
pub(crate) struct Slots<'c> {
    pub(crate) items: Vec<Item<'c>>,
}

impl<'c> Slots<'c> {
    /// Reads `conversation`, in which some items stand for `originals`: the digests of those, by their own. Counts
    /// no tokens.
    pub(crate) fn of(conversation: &'c dyn Conversation, originals: &HashMap<u128, u128>) -> Self {
        let mut items = items(conversation);
        let mut ids = SlotIds::default();
        for at in 0..items.len() {
            let (print, bytes) = identity(&items[at].content);
            let (call, is_error) = match items[at].content {
                ItemContent::Result { head, call, .. } => (call, head.is_error),
                _ => (None, false),
            };
            // A call comes before its result.
            let call = call.map(|call| items[call].grounds.print);
            let item = &mut items[at];
            item.bytes = bytes;
            item.grounds = Grounds {
                print,
                call,
                is_error,
            };
            item.id = ids.next(originals.get(&print).copied().unwrap_or(print));
            if let ItemContent::Text(_) = item.content {
                item.is_fixed |= !conversation.has_text(item.place.message, item.place.index);
            }
        }
        Self { items }
    }

    /// Counts the tokens of all items.
    pub(crate) fn counted(mut self, meter: &Meter) -> Self {
        for item in &mut self.items {
            item.tokens = Some(match &item.content {
                ItemContent::Call(call) => meter.count(call.arguments.text()),
                content => meter.parts(content.parts().iter().copied()),
            });
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

/// The fingerprint of an item, which covers everything that matters, and the number of bytes of its content: two
/// results with equal ones hold the same bytes under the same id.
fn identity(content: &ItemContent<'_>) -> (Fingerprint, u64) {
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
    if let ItemContent::Call(call) = content {
        let arguments = call.arguments.text();
        bytes = arguments.len() as u64;
        print.add_print(b'a', bytes, fingerprint(arguments.as_bytes()));
    }
    for part in content.parts() {
        bytes += add_part(&mut print, *part);
    }
    (print.finish(), bytes)
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
        part => Text::of_part(part).map_or(0, |text| text.bytes()),
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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
                assert!(seen.insert(identity(&content).0), "{id:?} {list:?}");
            }
        }
    }
}
