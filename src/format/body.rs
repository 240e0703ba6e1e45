//! A request's body as text: its messages, and every byte around them.

use std::fmt;
use std::ops::Range;

use offcut_json::{InvalidJson, JsonText, Node, View};
use offcut_store::ErrorChain;
use serde_json::Value;

use super::WireFormat;
use super::wire::FIELDS;

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
/// The messages are held twice: in the original text, and each separately.
#[derive(Clone, Debug)]
pub struct RequestBody {
    text: String,
    format: Option<WireFormat>,
    messages: Vec<JsonText>,
    /// Byte ranges of the messages in `text`.
    places: Vec<Range<usize>>,
    /// Byte ranges of the items of `tools` in `text`.
    tools: Vec<Range<usize>>,
}

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
    /// The key of the messages occurs twice, and readers may disagree on which one counts. It is
    /// best to pass such a body on as it is.
    #[error("the body has `{field}` twice: remove one of them")]
    KeyTwice {
        /// The key that occurs twice.
        field: &'static str,
    },
}

impl fmt::Debug for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
}

impl RequestBody {
    /// Finds the messages of a body. A body whose `input` is a string, as the Responses API
    /// accepts, has no messages.
    ///
    /// # Errors
    ///
    /// The text is not JSON, is not a body, or has `messages`, `input` or `contents` twice. No
    /// error holds any of the text.
    pub fn parse(text: impl Into<String>) -> Result<Self, BodyError> {
        let document = JsonText::parse(text)?;
        let root = Node::root(&document);
        for field in FIELDS {
            if root.fields().filter(|(name, _)| *name == field).count() > 1 {
                return Err(BodyError::KeyTwice { field });
            }
        }
        let list = WireFormat::list(root).map(|(_, list)| list);
        let is_text = root.get("input").and_then(View::as_str).is_some();
        if list.is_none() && !is_text {
            return Err(BodyError::NoMessages);
        }
        let format = list.map_or(Some(WireFormat::Responses), |_| WireFormat::of(root));
        let (messages, places) = list
            .into_iter()
            .flat_map(View::items)
            .map(|item| (item.to_text(), item.range()))
            .unzip();
        let tools = root
            .get("tools")
            .into_iter()
            .flat_map(View::items)
            .map(Node::range)
            .collect();
        Ok(Self {
            format,
            messages,
            places,
            tools,
            text: document.into_string(),
        })
    }

    /// The format of the messages, by [`WireFormat::detect`]'s rules; `None` if they fit none, or
    /// if there are none.
    #[must_use]
    pub fn format(&self) -> Option<WireFormat> {
        self.format
    }

    /// The messages as they are now.
    #[must_use]
    pub fn messages(&self) -> &[JsonText] {
        &self.messages
    }

    /// The messages as they came.
    pub fn originals(&self) -> impl Iterator<Item = &str> {
        self.texts(&self.places)
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
        let tool = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| text.into());
        self.texts(&self.tools).map(tool).collect()
    }

    fn texts<'b>(&'b self, places: &'b [Range<usize>]) -> impl Iterator<Item = &'b str> {
        places.iter().map(|place| &self.text[place.clone()])
    }
}

/// Writes the whole body, with the current messages.
impl fmt::Display for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        for (message, place) in self.messages.iter().zip(&self.places) {
            f.write_str(&self.text[at..place.start])?;
            f.write_str(message.as_str())?;
            at = place.end;
        }
        f.write_str(&self.text[at..])
    }
}
