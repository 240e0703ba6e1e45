//! The places of results, calls and users' texts, and the fingerprints of what they hold.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::fingerprint::{FieldPrint, Fingerprint};
use crate::format::{Call, Conversation, Data, PartRef, Piece, ResultHead};
use crate::report::{Decision, Subject};
use crate::rounds::{Slot, UserTexts};
use crate::tokens::Text;

/// The place of a result, of a call's arguments or of a user's text. Indices count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    Result { message: usize, slot: usize },
    Arguments { message: usize, call: usize },
    UserText { message: usize, text: usize },
}

impl Place {
    pub(crate) fn of(slot: &Slot<'_>) -> Self {
        let Slot { message, slot, .. } = *slot;
        Self::Result { message, slot }
    }

    pub(crate) fn message(self) -> usize {
        let (Self::Result { message, .. }
        | Self::Arguments { message, .. }
        | Self::UserText { message, .. }) = self;
        message
    }

    /// A decision about this place that changes nothing yet.
    pub(crate) fn decision(self, tool: &str, call_id: &str, bytes: u64) -> Decision {
        let subject = match self {
            Self::Result { .. } => Subject::Result,
            Self::Arguments { .. } => Subject::Arguments,
            Self::UserText { .. } => Subject::UserText,
        };
        let mut decision = Decision::new(subject, tool, call_id, bytes);
        decision.message = Some(self.message());
        decision
    }
}

/// The fingerprint of a result, built part by part. It covers everything that matters: two results
/// with equal fingerprints hold the same bytes under the same id.
pub(super) struct ResultPrint(FieldPrint);

impl ResultPrint {
    pub(super) fn new(head: ResultHead<'_>) -> Self {
        let print = FieldPrint::new(b'r', head.id.as_bytes());
        Self(print.with(b'n', head.name.unwrap_or_default().as_bytes()))
    }

    /// Adds the next part. Returns the fingerprint of its text, if it has one.
    pub(super) fn add(&mut self, part: PartRef<'_>) -> Option<Fingerprint> {
        let text = Text::of_part(part).map(Text::fingerprint);
        let kind = match part {
            PartRef::Text(_) => b't',
            PartRef::Json(_) => b'j',
            PartRef::Opaque(_) => b'o',
            PartRef::Media { mime, data } => {
                self.0.add(b'm', mime.as_bytes());
                match data {
                    Data::Base64(text) => self.0.add(b'6', text.as_bytes()),
                    Data::Bytes(bytes) => self.0.add(b'b', bytes),
                }
                return None;
            }
            PartRef::Link { mime, .. } => {
                self.0.add(b'm', mime.unwrap_or_default().as_bytes());
                b'l'
            }
        };
        if let Some(text) = text {
            self.0.add_print(kind, text);
        }
        text
    }

    pub(super) fn finish(self) -> Fingerprint {
        self.0.finish()
    }
}

/// The fingerprint of a call whose arguments have the fingerprint `arguments`.
pub(super) fn print_of_call(call: Call<'_>, arguments: Fingerprint) -> Fingerprint {
    let mut print = FieldPrint::new(b'c', call.id.as_bytes());
    print.add(b'n', call.name.as_bytes());
    print.add_print(b'a', arguments);
    print.finish()
}

/// The fingerprint of a user's text.
pub(super) fn print_of_text(text: Fingerprint) -> Fingerprint {
    let mut print = FieldPrint::new(b'u', b"");
    print.add_print(b't', text);
    print.finish()
}

/// Shows the place and the fingerprint of each result, call and user's text of a message.
fn visit_prints(
    conversation: &dyn Conversation,
    message: usize,
    see: &mut dyn FnMut(Place, Fingerprint),
) {
    let (mut slot, mut call, mut open) = (0, 0, None::<(Place, ResultPrint)>);
    let close = |open: &mut Option<(Place, ResultPrint)>,
                 see: &mut dyn FnMut(Place, Fingerprint)| {
        if let Some((place, print)) = open.take() {
            see(place, print.finish());
        }
    };
    let mut texts = UserTexts::default();
    conversation.visit(message, &mut |piece| {
        if let Some((text, content)) = texts.see(piece) {
            let print = print_of_text(Text::Is(content).fingerprint());
            see(Place::UserText { message, text }, print);
        }
        match piece {
            Piece::Role(_) => close(&mut open, see),
            Piece::Result(head) => {
                close(&mut open, see);
                open = Some((Place::Result { message, slot }, ResultPrint::new(head)));
                slot += 1;
            }
            Piece::Content(part) => {
                if let Some((_, print)) = &mut open {
                    print.add(part);
                }
            }
            Piece::Call(site) => {
                let arguments = Text::of_arguments(site.arguments).fingerprint();
                see(
                    Place::Arguments { message, call },
                    print_of_call(site, arguments),
                );
                call += 1;
            }
        }
    });
    close(&mut open, see);
}

/// Returns true if `is_one` accepts any of the fingerprints of a conversation. Allocates nothing.
pub(crate) fn any_print(
    conversation: &dyn Conversation,
    is_one: impl Fn(Fingerprint) -> bool,
) -> bool {
    let mut is_there = false;
    for message in 0..conversation.len() {
        visit_prints(conversation, message, &mut |_, print| {
            is_there |= is_one(print);
        });
        if is_there {
            return true;
        }
    }
    false
}

/// The current fingerprints of the content at `places`. Visits each message once, however many
/// places it has.
pub(crate) fn prints_at(
    conversation: &dyn Conversation,
    places: impl Iterator<Item = Place>,
) -> HashMap<Place, Fingerprint> {
    let places: HashSet<Place> = places.collect();
    let messages: BTreeSet<usize> = places.iter().map(|place| place.message()).collect();
    let mut prints = HashMap::with_capacity(places.len());
    for message in messages.into_iter().filter(|at| *at < conversation.len()) {
        visit_prints(conversation, message, &mut |place, print| {
            if places.contains(&place) {
                prints.insert(place, print);
            }
        });
    }
    prints
}

#[cfg(test)]
mod tests {
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
                    is_error: false,
                    is_for_program: false,
                    is_fixed: false,
                };
                let mut print = ResultPrint::new(head);
                for part in list {
                    print.add(*part);
                }
                assert!(seen.insert(print.finish()), "{id:?} {list:?}");
            }
        }
    }
}
