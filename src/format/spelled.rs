//! Wire formats over the text of messages.

use crate::json::{JsonText, Node, put_into_text};

use super::fixed::Fixed;
use super::wire_json::WireJson;
use super::{Format, Piece};
use crate::content::Part;

/// A wire format over the text of messages: [`OpenAiChat`](super::OpenAiChat),
/// [`Responses`](super::Responses), [`Anthropic`](super::Anthropic), [`Gemini`](super::Gemini), or
/// a [`WireFormat`](super::WireFormat) for any of them.
///
/// It shows and replaces the same pieces as the format does in a [`Value`](serde_json::Value). Only
/// the replaced values change: whitespace, key order, duplicate keys, escapes and numbers around
/// them stay, byte for byte. JSON is shown, and therefore stored, exactly as it is written in the
/// text.
///
/// Some things must stay as they are. A message with a duplicate of a key that the format reads
/// stays whole, since readers may disagree on its meaning. So does a result or call that is not
/// valid Unicode, such as half of a surrogate pair. These are shown with `is_fixed`, and replacing them
/// does nothing.
///
/// ```
/// use offcut::format::{Format, JsonText, OpenAiChat, Spelled};
/// let mut message = JsonText::parse(r#"{"role": "tool", "content": "long", "n": 1.00}"#)?;
/// Spelled(OpenAiChat).replace_result(&mut message, 0, vec!["short".into()]);
/// assert_eq!(message.as_str(), r#"{"role": "tool", "content": "short", "n": 1.00}"#);
/// # Ok::<(), offcut::format::InvalidJson>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spelled<F>(pub F);

impl<F: WireJson> Format for Spelled<F> {
    type Message = JsonText;

    fn visit<'m>(&self, message: &'m JsonText, see: &mut dyn FnMut(Piece<'m>)) {
        let fixed = Fixed::find(&self.0, message);
        if fixed.is_empty() {
            return self.0.see(Node::root(message), see);
        }
        let (mut results, mut calls) = (0.., 0..);
        self.0.see(Node::root(message), &mut |mut piece| {
            match &mut piece {
                Piece::Result(head) => {
                    head.is_fixed |= results.next().is_some_and(|nth| fixed.has_result(nth));
                }
                Piece::Call(call) => {
                    call.is_fixed |= calls.next().is_some_and(|nth| fixed.has_call(nth));
                }
                Piece::Role(_) | Piece::Content(_) => {}
            }
            see(piece);
        });
    }

    fn replace_result(&self, message: &mut JsonText, slot: usize, parts: Vec<Part>) {
        if !Fixed::find(&self.0, message).has_result(slot) {
            put_into_text(message, |message| self.0.result(message, slot, parts));
        }
    }

    fn replace_arguments(&self, message: &mut JsonText, call: usize, arguments: String) {
        if !Fixed::find(&self.0, message).has_call(call) {
            put_into_text(message, |message| {
                self.0.arguments(message, call, arguments)
            });
        }
    }

    fn has_text(&self, message: &JsonText, text: usize) -> bool {
        message.is_plain() && self.0.text_at(Node::root(message), text).is_some()
    }

    fn replace_text(&self, message: &mut JsonText, text: usize, new: String) {
        if message.is_plain() {
            put_into_text(message, |message| self.0.set_text(message, text, new));
        }
    }
}
