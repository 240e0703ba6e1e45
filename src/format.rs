//! Formats of messages: a visitor reads them, one method changes them, and nothing converts them.
//!
//! A [`Format`] reads and edits one message type. [`Messages`] presents a list of such messages as
//! a [`Conversation`], the trait that plans and middlewares work with. Ready to use are [`Plain`]
//! for this crate's own [`Message`], and [`OpenAiChat`], [`Responses`], [`Anthropic`] and
//! [`Gemini`], all of them a [`WireFormat`], for wire JSON.
//! [`Spelled`] runs these over the text of messages. [`RequestBody`] is a request's body as
//! text, and changes only what is replaced. A [`LoopFormat`] is one in which a loop also writes.

mod anthropic;
pub(crate) mod blocks;
mod body;
mod conversation;
mod foreign;
mod gemini;
mod loops;
mod openai_chat;
mod piece;
mod place;
mod plain;
mod responses;
mod site;
mod spelled;
#[cfg(test)]
mod tests;
mod wire;

use auto_impl::auto_impl;

#[doc(no_inline)]
pub use crate::json::{InvalidJson, JsonRef, JsonText};
pub use body::{BodyError, RequestBody};
pub use conversation::{Conversation, Messages};
pub use foreign::foreign_format;
pub use loops::LoopFormat;
pub use piece::{Call, Data, NewPiece, PartRef, Piece, ResultHead, Role};
pub(crate) use place::{Place, Places};
pub use plain::{Message, Plain};
pub use spelled::Spelled;
pub use wire::UnknownWireFormat;
pub use wire::WireFormat::{self, Anthropic, Gemini, OpenAiChat, Responses};

/// Reads and edits the tool calls and results of one message type. Two methods make any message
/// type work with this crate; a third lets a pass replace long texts of users.
///
/// Implementations are zero-size values. They convert nothing, and `visit` copies and allocates
/// nothing: it runs over every message before every call of a model. `tests/rules/formats/own.rs`
/// in the repository is a complete example.
///
/// # Contract
///
/// - `visit` gives the same pieces each time for the same message, starting with a [`Piece::Role`].
/// - The n-th [`Piece::Result`] of a message is its slot `n`, the n-th [`Piece::Call`] its call
///   `n`, counted from 0.
/// - After `replace(m, slot, NewPiece::Result(parts))`, `visit` gives `parts` as the slot's content. Everything
///   else stays: ids, order, roles, error marks, unknown fields. So a slot that holds one text and
///   gets the same text, now or after another one, leaves the message equal to what it was.
/// - Every slot can hold one text. If a message can't hold the other `parts`, a format writes JSON
///   as its text and other parts as a text that describes them, or leaves the whole message as it
///   was. It never writes only some of the parts.
/// - A result shows the same id as the call that it answers, or the tool's name if the messages have
///   no ids.
/// - A slot or call that does not exist, or that is shown with `is_fixed`, is left alone.
/// - The n-th text of a message, counted from 0, is the n-th text content that `visit` shows as a user's,
///   outside of results. After it is replaced, `visit` shows the new text there, and everything else stays.
#[auto_impl(&)]
pub trait Format: Send + Sync {
    /// The message type.
    type Message: Clone + Send + Sync;

    /// Calls `see` with each piece of `message`, in order.
    fn visit<'m>(&self, message: &'m Self::Message, see: &mut dyn FnMut(Piece<'m>));

    /// Replaces the content of the `index`-th result, the arguments of the `index`-th call or the `index`-th text of a
    /// user, whichever `new` is. One that `message` does not have is left alone.
    fn replace(&self, message: &mut Self::Message, index: usize, new: NewPiece);

    /// Returns true if a user's text exists and can be replaced. By default none can, and
    /// [`NewPiece::UserText`] never comes.
    fn has_text(&self, message: &Self::Message, text: usize) -> bool {
        let _ = (message, text);
        false
    }
}
