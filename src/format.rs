//! How the messages of a loop are seen: read by a visitor, changed in two places, never converted.
//!
//! A [`Format`] says how one message type holds tool calls and their results. [`Messages`] puts a
//! list of such messages behind [`Conversation`], the face that plans and middlewares see. Ready:
//! [`Plain`] for this crate's own [`Message`], and the wire JSON of [`OpenAiChat`], [`Responses`],
//! [`Anthropic`] and [`Gemini`]; [`WireFormat`] is whichever of them, for files of unknown kind.
//! [`Spelled`] is any of these over the text of messages, and [`RequestBody`] a request's body as
//! text, of which only what is replaced changes.

mod anthropic;
mod blocks;
mod body;
mod conversation;
mod definition;
mod fixed;
mod gemini;
mod json;
#[cfg(test)]
mod odd;
mod openai_chat;
mod piece;
mod plain;
mod responses;
mod rewriter;
mod spelled;
mod values;
mod wire;
mod wire_json;

use crate::content::{Part, ToolCall};

pub use anthropic::Anthropic;
pub use body::{BodyError, RequestBody};
pub(crate) use conversation::Rewrite;
pub use conversation::{Conversation, Messages};
pub use gemini::Gemini;
pub use json::{InvalidJson, JsonRef, JsonText};
pub use openai_chat::OpenAiChat;
pub use piece::{Arguments, Call, Data, PartRef, Piece, ResultHead, Role};
pub use plain::{Message, Plain};
pub use responses::Responses;
pub use rewriter::Rewriting;
pub use spelled::Spelled;
pub use wire::{UnknownWireFormat, WireFormat};

/// How one message type holds tool calls and results. Three methods make any message type work with
/// this crate.
///
/// Implementations are zero-size values. They convert nothing, and `visit` copies and allocates
/// nothing: it runs over every message before every call of a model. The README's section "Writing
/// a format" is a complete example.
///
/// # Contract
///
/// - `visit` gives the same pieces each time for the same message, starting with a [`Piece::Role`].
/// - The n-th [`Piece::Result`] of a message is its slot `n`, the n-th [`Piece::Call`] its call
///   `n`, from 0.
/// - After `replace_result(m, slot, parts)`, `visit` gives `parts` as the slot's content (a format
///   that has no such part gives its text), and everything else as before: ids, order, roles, error
///   marks, unknown fields.
/// - A slot or call that is not there, or shown with `is_fixed`, is left alone.
pub trait Format: Send + Sync {
    /// The message type.
    type Message: Clone + Send + Sync;

    /// Shows `see` what `message` holds.
    fn visit<'m>(&self, message: &'m Self::Message, see: &mut dyn FnMut(Piece<'m>));

    /// Replaces the content of a result slot.
    fn replace_result(&self, message: &mut Self::Message, slot: usize, parts: Vec<Part>);

    /// Replaces the arguments of a call by `arguments`, which is JSON.
    fn replace_arguments(&self, message: &mut Self::Message, call: usize, arguments: String);

    /// Whether a rewriter may replace the whole message, so that what it holds is only stored as
    /// its pieces. The default is `true`.
    fn is_rewritable(&self, message: &Self::Message) -> bool {
        let _ = message;
        true
    }
}

/// The calls of a message, with their arguments as text.
fn tool_calls<F: Format>(format: &F, message: &F::Message) -> Vec<ToolCall> {
    let mut calls = Vec::new();
    format.visit(message, &mut |piece| {
        if let Piece::Call(call) = piece {
            calls.push(ToolCall::new(
                call.id,
                call.name,
                call.arguments.to_string(),
            ));
        }
    });
    calls
}

/// The examples of docs/formats.md compile and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/formats.md")]
struct Page;
