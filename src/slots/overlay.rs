//! A conversation with some results, arguments and users' texts replaced, while its messages stay as they are.

use std::collections::BTreeMap;

use crate::content::Part;
use crate::decisions::Substitute;
use crate::format::{Arguments, Call, Conversation, Piece, Place, Places};
use crate::report::Subject;

/// A borrowed conversation, and what is shown in place of some of its results and arguments.
/// Dropping it leaves the messages unchanged.
pub(crate) struct Overlay<'c> {
    under: &'c dyn Conversation,
    pub(crate) puts: Puts,
}

/// Replacements, by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Puts(BTreeMap<Place, Substitute>);

impl Puts {
    /// Changes the messages.
    pub(crate) fn apply(self, conversation: &mut dyn Conversation) {
        for (place, put) in self.0 {
            let (message, index) = (place.message, place.index);
            match put {
                Substitute::Arguments(arguments) => {
                    conversation.replace_arguments(message, index, arguments);
                }
                put if place.subject == Subject::UserText => {
                    let text = put.only_text().unwrap_or_default().to_owned();
                    conversation.replace_text(message, index, text);
                }
                Substitute::Parts(parts) => conversation.replace_result(message, index, parts),
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
        let fits = match place.subject {
            Subject::Result => matches!(put, Substitute::Parts(_)),
            Subject::Arguments => matches!(put, Substitute::Arguments(_)),
            Subject::UserText => put.only_text().is_some(),
        };
        if fits {
            self.puts.0.insert(place, put);
        }
        fits
    }

    pub(crate) fn is_put(&self, place: Place) -> bool {
        self.puts.0.contains_key(&place)
    }
}

impl Conversation for Overlay<'_> {
    fn len(&self) -> usize {
        self.under.len()
    }

    fn visit<'m>(&'m self, message: usize, see: &mut dyn FnMut(Piece<'m>)) {
        let (mut places, mut is_replaced) = (Places::of(message), false);
        self.under.visit(message, &mut |piece| {
            let place = places.see(piece);
            let put = place.and_then(|place| self.puts.0.get(&place));
            let is_result = matches!(piece, Piece::Result(_));
            if is_result {
                is_replaced = put.is_some();
            }
            match (piece, put) {
                (Piece::Call(call), Some(Substitute::Arguments(text))) => {
                    let arguments = Arguments::Text(text);
                    see(Piece::Call(Call { arguments, ..call }));
                }
                (_, Some(Substitute::Parts(parts))) => {
                    if is_result {
                        see(piece);
                    }
                    let parts = parts.iter();
                    parts.for_each(|part| see(Piece::Content(part.into())));
                }
                (Piece::Content(_), _) if places.in_result && is_replaced => {}
                _ => see(piece),
            }
        });
    }

    // Nothing edits what is shown: `put` is the way.
    fn replace_result(&mut self, _: usize, _: usize, _: Vec<Part>) {}

    fn replace_arguments(&mut self, _: usize, _: usize, _: String) {}

    fn has_text(&self, message: usize, text: usize) -> bool {
        self.under.has_text(message, text)
    }
}
