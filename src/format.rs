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
mod gemini;
mod json;
mod openai_chat;
mod plain;
mod responses;
mod rewriter;
mod spelled;
mod wire;
mod wire_json;

use std::fmt;

use bytes::Bytes;

use crate::content::{Part, ToolCall};
use json::View;

pub use anthropic::Anthropic;
pub use body::{BodyError, RequestBody};
pub use gemini::Gemini;
pub use json::{InvalidJson, JsonRef, JsonText};
pub use openai_chat::OpenAiChat;
pub use plain::{Message, Plain};
pub use responses::Responses;
pub use rewriter::{Rewrite, Rewriting};
pub use spelled::Spelled;
pub use wire::{UnknownWireFormat, WireFormat};
use wire_json::WireJson;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions: system and developer messages.
    System,
    /// A person, or whoever stands in for one.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// What a message holds, piece by piece, in order. Everything is borrowed from the message.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Piece<'m> {
    /// Whose the pieces up to the next `Role` are. Each message begins with one; a message that
    /// holds the items of several (a user message with results and text) gives one before each.
    Role(Role),
    /// The model calls a tool.
    Call(Call<'m>),
    /// A tool answers: opens a result slot. The [`Content`](Piece::Content) that follows, up to the
    /// next `Result` or `Role`, is the slot's.
    Result(ResultHead<'m>),
    /// Content: of the open result slot if there is one, else of the message itself.
    Content(PartRef<'m>),
}

/// A call as a message holds it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'m> {
    /// Empty where the format or the provider has none.
    pub id: &'m str,
    /// The tool's name.
    pub name: &'m str,
    /// What the tool is asked.
    pub arguments: Arguments<'m>,
    /// Whether the provider signed the call, so that changing its arguments would make it invalid.
    pub is_signed: bool,
    /// Whether its arguments must stay as they are, since the message can't be changed without
    /// changing what else it says: a key in it stands twice, or it is not valid Unicode. Replacing
    /// them does nothing.
    pub is_fixed: bool,
}

/// A call's arguments as a message holds them.
#[derive(Clone, Copy, Debug)]
pub enum Arguments<'m> {
    /// JSON as text; what a model wrote may be no JSON at all.
    Text(&'m str),
    /// JSON.
    Json(JsonRef<'m>),
}

impl<'m> Arguments<'m> {
    /// A field that holds them as text, or as JSON; empty text if there is none.
    fn of(field: Option<impl View<'m>>) -> Self {
        let Some(field) = field else {
            return Self::Text("");
        };
        field
            .as_str()
            .map_or_else(|| Self::Json(field.json()), Self::Text)
    }
}

/// The arguments' text. JSON is compact where it is a value, and as it is spelled where it is a
/// text.
impl fmt::Display for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Json(json) => json.fmt(f),
        }
    }
}

/// What a message says of a result, but for its content.
#[derive(Clone, Copy, Debug)]
pub struct ResultHead<'m> {
    /// The id of the call that it answers; empty where the format or the provider has none.
    pub id: &'m str,
    /// The tool's name where the message has it.
    pub name: Option<&'m str>,
    /// Whether the message marks the result as an error.
    pub is_error: bool,
    /// Whether its content must stay as it is, for the same reasons as a [`Call`]'s arguments.
    /// Replacing it does nothing.
    pub is_fixed: bool,
}

/// A [`Part`] as a message holds it.
#[derive(Clone, Copy, Debug)]
pub enum PartRef<'m> {
    /// Text.
    Text(&'m str),
    /// A JSON document.
    Json(JsonRef<'m>),
    /// An image, a sound or a file inside the message.
    Media {
        /// Its media type.
        mime: &'m str,
        /// Its bytes.
        data: Data<'m>,
    },
    /// An image, a sound or a file that the message points at.
    Link {
        /// Its media type, if the message says.
        mime: Option<&'m str>,
        /// Where it is.
        url: &'m str,
    },
    /// Something that the format does not know.
    Opaque(JsonRef<'m>),
}

/// Bytes as a message holds them.
#[derive(Clone, Copy, Debug)]
pub enum Data<'m> {
    /// Base64 text.
    Base64(&'m str),
    /// The bytes themselves.
    Bytes(&'m Bytes),
}

impl<'m> From<&'m Part> for PartRef<'m> {
    fn from(part: &'m Part) -> Self {
        match part {
            Part::Text(text) => Self::Text(text),
            Part::Json(value) => Self::Json(value.into()),
            Part::Media { mime, data } => Self::Media {
                mime,
                data: Data::Bytes(data),
            },
            Part::Link { mime, url } => Self::Link {
                mime: mime.as_deref(),
                url,
            },
            Part::Opaque(value) => Self::Opaque(value.into()),
        }
    }
}

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

    /// A copy whose rounds are rewritten, if somebody wants them to be: see [`Rewriting`].
    fn rewrite(&mut self) -> Option<Box<dyn Rewrite + '_>> {
        None
    }
}

const _: Option<&dyn Conversation> = None; // stays object-safe

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

impl<F: Format> Conversation for Messages<'_, F> {
    fn len(&self) -> usize {
        self.messages.len()
    }

    fn visit<'m>(&'m self, message: usize, see: &mut dyn FnMut(Piece<'m>)) {
        rewriter::visit(self.format, self.messages, message, see);
    }

    fn replace_result(&mut self, message: usize, slot: usize, parts: Vec<Part>) {
        rewriter::replace_result(self.format, self.messages, message, slot, parts);
    }

    fn replace_arguments(&mut self, message: usize, call: usize, arguments: String) {
        rewriter::replace_arguments(self.format, self.messages, message, call, arguments);
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

impl Data<'_> {
    /// How many bytes it is, padding and line breaks of its base64 aside.
    pub(crate) fn decoded_len(self) -> u64 {
        match self {
            Self::Base64(text) => text.trim_end_matches('=').len() as u64 * 3 / 4,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// The examples of docs/formats.md compile and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/formats.md")]
struct Page;
