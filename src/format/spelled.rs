//! Wire formats over the text of messages.

use crate::json::{JsonText, Node, put_into_text};

use super::{Format, NewPiece, Piece, WireFormat};
use crate::report::Subject;

/// A wire format over the text of messages.
///
/// It shows and replaces the same pieces as the format does in a [`Value`](serde_json::Value). Only
/// the replaced values change: whitespace, key order, duplicate keys, escapes and numbers around
/// them stay, byte for byte. JSON is shown, and therefore stored, exactly as it is written in the
/// text.
///
/// A message stays as it is if an object in it has a key twice, since readers may disagree on its meaning, or if a
/// string in it is not valid Unicode, such as half of a surrogate pair. Its results and calls are shown with
/// `is_fixed`, and replacing them does nothing.
///
/// ```
/// use offcut::format::{Format, JsonText, NewPiece, OpenAiChat, Spelled};
/// let mut message = JsonText::parse(r#"{"role": "tool", "content": "long", "n": 1.00}"#)?;
/// Spelled(OpenAiChat).replace(&mut message, 0, NewPiece::Result(vec!["short".into()]));
/// assert_eq!(message.as_str(), r#"{"role": "tool", "content": "short", "n": 1.00}"#);
/// # Ok::<(), offcut::format::InvalidJson>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spelled(pub WireFormat);

impl Format for Spelled {
    type Message = JsonText;

    fn visit<'m>(&self, message: &'m JsonText, see: &mut dyn FnMut(Piece<'m>)) {
        let is_fixed = !message.is_plain();
        self.0.see(Node::root(message), &mut |mut piece, _| {
            match &mut piece {
                Piece::Result(head) => head.is_fixed |= is_fixed,
                Piece::Call(call) => call.is_fixed |= is_fixed,
                Piece::Role(_) | Piece::Content(_) => {}
            }
            see(piece);
        });
    }

    fn replace(&self, message: &mut JsonText, index: usize, new: NewPiece) {
        if message.is_plain() {
            put_into_text(message, |message| self.0.edits(message, index, new));
        }
    }

    fn has_text(&self, message: &JsonText, text: usize) -> bool {
        let site = || self.0.site(Node::root(message), Subject::UserText, text);
        message.is_plain() && site().is_some()
    }
}
