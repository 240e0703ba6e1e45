//! Lists of messages of any type.

use std::fmt;

use super::{Format, NewPiece, Piece};

/// A list of messages of any type. Plans are made from it and applied to it.
pub trait Conversation: Send + Sync {
    /// Number of messages.
    fn len(&self) -> usize;

    /// Returns true if there are no messages.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `see` with each piece of a message, in order. `message` must be below
    /// [`len`](Self::len).
    fn visit<'m>(&'m self, message: usize, see: &mut dyn FnMut(Piece<'m>));

    /// Replaces a result, a call's arguments or a user's text, as [`Format::replace`] does. One that does not exist, or
    /// that must stay, is left alone.
    fn replace(&mut self, message: usize, index: usize, new: NewPiece);

    /// Returns true if a user's text can be replaced; see [`Format::has_text`].
    fn has_text(&self, message: usize, text: usize) -> bool {
        let _ = (message, text);
        false
    }
}

const _: Option<&dyn Conversation> = None; // stays object-safe

/// Shows the number of messages, never the content.
impl fmt::Debug for dyn Conversation + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages", self.len())
    }
}

/// A list of messages of one format, as a [`Conversation`].
///
/// ```
/// use offcut::format::{Conversation, Message, Messages, Plain};
/// let mut messages = vec![Message::user("hello")];
/// assert_eq!(Messages::new(Plain, &mut messages).len(), 1);
/// ```
#[derive(Debug)]
pub struct Messages<'a, F: Format> {
    format: F,
    messages: &'a mut [F::Message],
}

impl<'a, F: Format> Messages<'a, F> {
    /// Presents `messages` through `format`.
    pub fn new(format: F, messages: &'a mut [F::Message]) -> Self {
        Self { format, messages }
    }
}

impl<F: Format> Conversation for Messages<'_, F> {
    fn len(&self) -> usize {
        self.messages.len()
    }

    fn visit<'m>(&'m self, message: usize, see: &mut dyn FnMut(Piece<'m>)) {
        if let Some(message) = self.messages.get(message) {
            self.format.visit(message, see);
        }
    }

    fn replace(&mut self, message: usize, index: usize, new: NewPiece) {
        if let Some(message) = self.messages.get_mut(message) {
            self.format.replace(message, index, new);
        }
    }

    fn has_text(&self, message: usize, text: usize) -> bool {
        let message = self.messages.get(message);
        message.is_some_and(|message| self.format.has_text(message, text))
    }
}
