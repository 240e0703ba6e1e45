//! Lists of messages of any type.

use super::{Format, Piece};
use crate::content::Part;
use crate::guard::HandlerError;

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

    /// Replaces the content of a result slot. A slot that does not exist is left alone.
    fn replace_result(&mut self, message: usize, slot: usize, parts: Vec<Part>);

    /// Replaces the arguments of a call. A call that does not exist is left alone.
    fn replace_arguments(&mut self, message: usize, call: usize, arguments: String);

    /// Starts a copy in which rounds can be rewritten. Only [`Rewriting`](super::Rewriting)
    /// supports it.
    #[doc(hidden)]
    fn rewrite(&mut self) -> Option<Box<dyn Rewrite + '_>> {
        None
    }
}

const _: Option<&dyn Conversation> = None; // stays object-safe

/// A copy of a conversation in which rounds are rewritten. It is public because a method of
/// [`Conversation`] returns it, and it can't be named outside this crate.
pub trait Rewrite: Send + Sync {
    /// Hands the messages of one round to the rewriter and returns their replacement; `None` to
    /// leave the round as it is.
    ///
    /// # Errors
    ///
    /// Fails if the rewriter failed or panicked. The round stays as it was.
    fn round(&mut self, messages: &[usize]) -> Result<Option<&dyn Conversation>, HandlerError>;

    /// Drops the replacement of the round whose first message is `first`, so that the round stays.
    fn leave(&mut self, first: usize);

    /// The conversation with all rounds rewritten so far. Later calls of `round` and `leave` have
    /// no effect.
    fn copy(&mut self) -> &mut dyn Conversation;

    /// Replaces the conversation by the copy.
    fn finish(self: Box<Self>);
}

/// A list of messages of one format, as a [`Conversation`].
///
/// ```
/// use offcut::format::{Conversation, Message, Messages, Plain};
/// let mut messages = vec![Message::user("hello")];
/// assert_eq!(Messages::new(&Plain, &mut messages).len(), 1);
/// ```
#[derive(Debug)]
pub struct Messages<'a, F: Format> {
    format: &'a F,
    messages: &'a mut [F::Message],
}

impl<'a, F: Format> Messages<'a, F> {
    /// Presents `messages` through `format`.
    pub fn new(format: &'a F, messages: &'a mut [F::Message]) -> Self {
        Self { format, messages }
    }
}

/// The methods of a conversation that has a `format` and a list of `messages`.
macro_rules! through_format {
    () => {
        fn len(&self) -> usize {
            self.messages.len()
        }

        fn visit<'m>(&'m self, message: usize, see: &mut dyn FnMut(Piece<'m>)) {
            if let Some(message) = self.messages.get(message) {
                self.format.visit(message, see);
            }
        }

        fn replace_result(&mut self, message: usize, slot: usize, parts: Vec<Part>) {
            if let Some(message) = self.messages.get_mut(message) {
                self.format.replace_result(message, slot, parts);
            }
        }

        fn replace_arguments(&mut self, message: usize, call: usize, arguments: String) {
            if let Some(message) = self.messages.get_mut(message) {
                self.format.replace_arguments(message, call, arguments);
            }
        }
    };
}

pub(super) use through_format;

impl<F: Format> Conversation for Messages<'_, F> {
    through_format!();
}
