//! A conversation with some results and arguments replaced, while its messages stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use crate::clear::{Place, Substitute};
use crate::content::Part;
use crate::format::{Arguments, Call, Conversation, Piece};

/// A borrowed conversation, and what is shown in place of some of its results and arguments.
/// Dropping it leaves the messages unchanged.
pub(super) struct Overlay<'c> {
    under: &'c dyn Conversation,
    puts: Puts,
    /// The places that were replaced since [`begin`](Self::begin).
    new: BTreeSet<Place>,
}

/// Replacements, by message.
#[derive(Clone, Debug, Default)]
pub(super) struct Puts(BTreeMap<usize, BTreeMap<Place, Substitute>>);

impl Puts {
    /// Changes the messages.
    pub(super) fn apply(self, conversation: &mut dyn Conversation) {
        for (place, put) in self.0.into_values().flatten() {
            match (place, put) {
                (Place::Result { message, slot }, Substitute::Parts(parts)) => {
                    conversation.replace_result(message, slot, parts);
                }
                (Place::Arguments { message, call }, Substitute::Arguments(arguments)) => {
                    conversation.replace_arguments(message, call, arguments);
                }
                _ => {}
            }
        }
    }
}

impl<'c> Overlay<'c> {
    pub(super) fn new(under: &'c dyn Conversation) -> Self {
        Self {
            under,
            puts: Puts::default(),
            new: BTreeSet::new(),
        }
    }

    /// Shows `put` at `place`. Returns `false` if it does not fit there.
    pub(super) fn put(&mut self, place: Place, put: Substitute) -> bool {
        let fits = matches!(
            (place, &put),
            (Place::Result { .. }, Substitute::Parts(_))
                | (Place::Arguments { .. }, Substitute::Arguments(_))
        );
        if fits {
            let puts = self.puts.0.entry(place.message()).or_default();
            puts.insert(place, put);
            self.new.insert(place);
        }
        fits
    }

    pub(super) fn get(&self, place: Place) -> Option<&Substitute> {
        self.puts.0.get(&place.message())?.get(&place)
    }

    pub(super) fn is_put(&self, place: Place) -> bool {
        self.get(place).is_some()
    }

    /// Begins a step whose replacements are told apart from earlier ones.
    pub(super) fn begin(&mut self) {
        self.new.clear();
    }

    /// The places that were replaced since [`begin`](Self::begin), in order.
    pub(super) fn new_places(&self) -> impl Iterator<Item = Place> {
        self.new.iter().copied()
    }

    pub(super) fn puts(&self) -> &Puts {
        &self.puts
    }

    pub(super) fn into_puts(self) -> Puts {
        self.puts
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
        self.under.visit(message, &mut |piece| match piece {
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
}
