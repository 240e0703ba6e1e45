//! A request's body as text: its messages, and every byte around them.

use std::fmt;

use crate::backend::debug_as_chain;
use crate::json::{InvalidJson, JsonRef, JsonText, Node, View};
use serde_json::Value;

use super::wire::FIELDS;
use super::{WireFormat, foreign_format};

/// A request's original body, in which only the messages can be changed. It is a JSON list of
/// messages, or an object with one in `messages`, `input` or `contents`.
///
/// [`to_string`](ToString::to_string) gives the body with the current messages and every other byte
/// unchanged. Without a change it gives the original text.
///
/// ```
/// use offcut::format::{RequestBody, Messages, Spelled, WireFormat};
/// use offcut::{Turn, ToolReduction, backend::Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = r#"{ "temperature": 1.00, "messages": [ {"role": "user", "content": "caf\u00e9"} ] }"#;
/// let mut body = RequestBody::parse(text)?;
/// assert_eq!(body.format(), Some(WireFormat::OpenAiChat));
///
/// let tools = body.tools();
/// let format = Spelled(WireFormat::OpenAiChat);
/// let mut conversation = Messages::new(&format, body.messages_mut());
/// let mut turn = Turn { tools: &tools, ..Turn::new(&mut conversation) };
/// ToolReduction::recommended(Memory::new()).build()?.clear_turn(&mut turn).await?;
/// assert_eq!(body.to_string(), text);
/// # Ok(()) }
/// ```
///
/// Clones share the text of their messages.
#[derive(Clone, Debug)]
pub struct RequestBody {
    format: Option<WireFormat>,
    /// The body as it came.
    document: JsonText,
    messages: Vec<JsonText>,
}

/// Bytes that a value or a key takes: its place in the body, in a list that grows by doubling, and its
/// place in its message.
const VALUE: usize = 48;
/// Bytes that an object takes besides: much is noted about messages, calls, results and their parts while they are
/// reduced, and any object may be one.
const OBJECT: usize = 1536;
/// Bytes that an item of a list of messages takes besides, whatever it is.
const ITEM: usize = 256;
/// Bytes that a value of a tool takes besides, as a `Value`.
const TOOL_VALUE: usize = 160;

/// Reason for not finding messages in a text.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The text is not JSON.
    #[error(transparent)]
    InvalidJson(#[from] InvalidJson),
    /// The text holds no list of messages.
    #[error(
        "no messages found: expected a JSON array of messages, or an object with one in `messages`, `input` or `contents`"
    )]
    NoMessages,
    /// The body would take more memory than it may.
    #[error("the body has too many values for its length: it would take more memory than it may")]
    TooDense,
    /// The key of the messages occurs twice, and readers may disagree on which one counts. It is
    /// best to pass such a body on as it is.
    #[error("the body has `{field}` twice: remove one of them")]
    KeyTwice {
        /// The key that occurs twice.
        field: &'static str,
    },
}

debug_as_chain!(BodyError);

impl RequestBody {
    /// Finds the messages of a body. A body whose `input` is a string, as the Responses API
    /// accepts, has no messages.
    ///
    /// # Errors
    ///
    /// The text is not JSON, is not a body, or has `messages`, `input` or `contents` twice. No
    /// error holds any of the text.
    pub fn parse(text: impl Into<String>) -> Result<Self, BodyError> {
        Self::parse_within(text, usize::MAX)
    }

    /// Does the same as [`parse`](Self::parse), for a body from somebody who may want to exhaust the
    /// memory: fails if parsing and reducing it would take more than about `memory` bytes. Short
    /// values, messages and tools take many times as much memory as text.
    ///
    /// ```
    /// # use offcut::format::{BodyError, RequestBody};
    /// let text = format!("[{}1]", "1,".repeat(10_000));
    /// assert_eq!(RequestBody::parse_within(text, 1_000_000).err(), Some(BodyError::TooDense));
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`parse`](Self::parse), and [`BodyError::TooDense`].
    pub fn parse_within(text: impl Into<String>, memory: usize) -> Result<Self, BodyError> {
        let document = JsonText::parse_within(text, memory / VALUE)?.ok_or(BodyError::TooDense)?;
        let root = Node::root(&document);
        for field in FIELDS {
            if root.fields().filter(|(name, _)| *name == field).count() > 1 {
                return Err(BodyError::KeyTwice { field });
            }
        }
        let list = WireFormat::list(root);
        let is_text = root.get("input").and_then(View::as_str).is_some();
        if list.is_none() && !is_text {
            return Err(BodyError::NoMessages);
        }
        let items = || items(root);
        let tools = root.get("tools");
        let all = root.values() * VALUE
            + root.objects() * OBJECT
            + items().count() * ITEM
            + tools.map_or(0, |tools| tools.values() * TOOL_VALUE);
        if all > memory {
            return Err(BodyError::TooDense);
        }
        let messages: Vec<JsonText> = items().map(Node::to_text).collect();
        let format = list.map_or(Some(WireFormat::Responses), |(field, _)| {
            WireFormat::of_messages(root, field, messages.iter().map(Node::root))
        });
        Ok(Self {
            format,
            document,
            messages,
        })
    }

    /// The format of the messages, by [`WireFormat::detect`]'s rules; `None` if they fit none.
    #[must_use]
    pub fn format(&self) -> Option<WireFormat> {
        self.format
    }

    /// The name of the framework's format that a message is in, by [`foreign_format`].
    #[must_use]
    pub fn foreign_format(&self) -> Option<&'static str> {
        items(Node::root(&self.document)).find_map(foreign_format)
    }

    /// The messages as they are now.
    #[must_use]
    pub fn messages(&self) -> &[JsonText] {
        &self.messages
    }

    /// The messages as they came.
    pub fn originals(&self) -> impl Iterator<Item = &str> {
        items(Node::root(&self.document)).map(Node::spelling)
    }

    /// The messages, to be changed through [`Spelled`](super::Spelled). Their number is fixed,
    /// since each has its place in the body.
    #[must_use]
    pub fn messages_mut(&mut self) -> &mut [JsonText] {
        &mut self.messages
    }

    /// The items of `tools`, to be counted with the messages. An item that `serde_json` cannot read
    /// is given as a string of its text.
    #[must_use]
    pub fn tools(&self) -> Vec<Value> {
        let tools = Node::root(&self.document).get("tools");
        let texts = tools.into_iter().flat_map(View::items).map(View::json);
        let tool = |text: JsonRef<'_>| text.to_value().unwrap_or_else(|| text.to_string().into());
        texts.map(tool).collect()
    }

    /// The body's other fields, which are not its messages: their names, and their values as JSON text.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let root = Node::root(&self.document);
        let messages = WireFormat::list(root).and_then(|(field, _)| field);
        let others = root.fields();
        let others = others.filter(move |(name, _)| Some(*name) != messages);
        others.map(|(name, value)| (name, value.spelling()))
    }
}

/// The messages of a body.
fn items(body: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let list = WireFormat::list(body);
    list.into_iter().flat_map(|(_, list)| list.items())
}

/// Writes the whole body, with the current messages.
impl fmt::Display for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, mut at) = (self.document.as_str(), 0);
        let places = items(Node::root(&self.document)).map(Node::range);
        for (message, place) in self.messages.iter().zip(places) {
            f.write_str(&text[at..place.start])?;
            f.write_str(message.as_str())?;
            at = place.end;
        }
        f.write_str(&text[at..])
    }
}
