//! A conversation with some results, arguments and users' texts replaced, while its messages stay as they are.

use std::collections::BTreeMap;

use super::place::Place;
use crate::content::Part;
use crate::decisions::Substitute;
use crate::format::{Arguments, Call, Conversation, PartRef, Piece};
use crate::rounds::UserTexts;

/// A borrowed conversation, and what is shown in place of some of its results and arguments.
/// Dropping it leaves the messages unchanged.
pub(crate) struct Overlay<'c> {
    under: &'c dyn Conversation,
    pub(crate) puts: Puts,
}

/// Replacements, by message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Puts(BTreeMap<usize, BTreeMap<Place, Substitute>>);

impl Puts {
    /// Adds a replacement. Returns `false` if it does not fit its place.
    pub(crate) fn put(&mut self, place: Place, put: Substitute) -> bool {
        let fits = matches!(
            (place, &put),
            (Place::Result { .. }, Substitute::Parts(_))
                | (Place::Arguments { .. }, Substitute::Arguments(_))
        ) || matches!(place, Place::UserText { .. }) && put.only_text().is_some();
        if fits {
            let puts = self.0.entry(place.message()).or_default();
            puts.insert(place, put);
        }
        fits
    }

    /// Changes the messages.
    pub(crate) fn apply(self, conversation: &mut dyn Conversation) {
        for (place, put) in self.0.into_values().flatten() {
            match (place, put) {
                (Place::Result { message, slot }, Substitute::Parts(parts)) => {
                    conversation.replace_result(message, slot, parts);
                }
                (Place::Arguments { message, call }, Substitute::Arguments(arguments)) => {
                    conversation.replace_arguments(message, call, arguments);
                }
                (Place::UserText { message, text }, put) => {
                    if let Some(new) = put.only_text() {
                        conversation.replace_text(message, text, new.to_owned());
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'c> Overlay<'c> {
    pub(crate) fn new(under: &'c dyn Conversation) -> Self {
        Self {
            under,
            puts: Puts::default(),
        }
    }

    /// Shows `put` at `place`. Returns `false` if it does not fit there.
    pub(crate) fn put(&mut self, place: Place, put: Substitute) -> bool {
        self.puts.put(place, put)
    }

    pub(crate) fn is_put(&self, place: Place) -> bool {
        let puts = self.puts.0.get(&place.message());
        puts.is_some_and(|puts| puts.contains_key(&place))
    }
}

impl Conversation for Overlay<'_> {
    fn len(&self) -> usize {
        self.under.len()
    }

    fn visit<'m>(&'m self, message: usize, see: &mut dyn FnMut(Piece<'m>)) {
        let Some(puts) = self.puts.0.get(&message) else {
            return self.under.visit(message, see);
        };
        let (mut slots, mut calls, mut is_replaced) = (0.., 0.., false);
        let mut texts = UserTexts::default();
        let text_of = |text: usize| puts.get(&Place::UserText { message, text })?.only_text();
        self.under.visit(message, &mut |piece| match piece {
            piece if let Some(new) = texts.see(piece).and_then(|(text, _)| text_of(text)) => {
                see(Piece::Content(PartRef::Text(new)));
            }
            Piece::Role(_) => {
                is_replaced = false;
                see(piece);
            }
            Piece::Result(_) => {
                let put = slots.next().map(|slot| Place::Result { message, slot });
                let put = put.and_then(|place| puts.get(&place));
                is_replaced = put.is_some();
                see(piece);
                if let Some(Substitute::Parts(parts)) = put {
                    parts
                        .iter()
                        .for_each(|part| see(Piece::Content(part.into())));
                }
            }
            Piece::Content(_) if is_replaced => {}
            Piece::Content(_) => see(piece),
            Piece::Call(call) => {
                let put = calls.next().map(|call| Place::Arguments { message, call });
                let arguments = match put.and_then(|place| puts.get(&place)) {
                    Some(Substitute::Arguments(text)) => Arguments::Text(text),
                    _ => call.arguments,
                };
                see(Piece::Call(Call { arguments, ..call }));
            }
        });
    }

    fn replace_result(&mut self, message: usize, slot: usize, parts: Vec<Part>) {
        self.put(Place::Result { message, slot }, Substitute::Parts(parts));
    }

    fn replace_arguments(&mut self, message: usize, call: usize, arguments: String) {
        self.put(
            Place::Arguments { message, call },
            Substitute::Arguments(arguments),
        );
    }

    fn has_text(&self, message: usize, text: usize) -> bool {
        self.under.has_text(message, text)
    }

    fn replace_text(&mut self, message: usize, text: usize, new: String) {
        let put = Substitute::Parts(vec![new.into()]);
        self.put(Place::UserText { message, text }, put);
    }
}
