//! Lists of messages of any type.

use super::{Format, Piece};
use crate::content::Part;
use crate::guard::HandlerError;

/// A list of messages, whatever their type: what plans are made of and applied to.
pub trait Conversation: Send + Sync {
    /// How many messages there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shows `see` what a message holds. `message` is below [`len`](Self::len).
    fn visit<'m>(&'m self, message: usize, see: &mut dyn FnMut(Piece<'m>));

    /// Replaces the content of a result slot. What is not there is left alone.
    fn replace_result(&mut self, message: usize, slot: usize, parts: Vec<Part>);

    /// Replaces the arguments of a call. What is not there is left alone.
    fn replace_arguments(&mut self, message: usize, call: usize, arguments: String);

    /// A copy whose rounds are rewritten: only [`Rewriting`](super::Rewriting) has one.
    #[doc(hidden)]
    fn rewrite(&mut self) -> Option<Box<dyn Rewrite + '_>> {
        None
    }
}

const _: Option<&dyn Conversation> = None; // stays object-safe

/// A copy of a conversation in which rounds are rewritten. Public because a method of
/// [`Conversation`] gives one, and nameless outside of this crate.
pub trait Rewrite: Send + Sync {
    /// Hands the messages of one round to the rewriter. What it wants in their place, `None` for
    /// nothing.
    ///
    /// # Errors
    ///
    /// The rewriter failed or panicked: the round is as it was.
    fn round(&mut self, messages: &[usize]) -> Result<Option<&dyn Conversation>, HandlerError>;

    /// Leaves the round as it was after all whose first message this is.
    fn leave(&mut self, first: usize);

    /// The conversation with the rounds so far rewritten. Nothing is rewritten any more afterwards.
    fn copy(&mut self) -> &mut dyn Conversation;

    /// Puts the copy in the place of the conversation.
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
    /// `messages`, seen through `format`.
    pub fn new(format: &'a F, messages: &'a mut [F::Message]) -> Self {
        Self { format, messages }
    }
}

/// What a conversation does that has a `format` and a list of `messages`. What is not there is left
/// alone.
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
