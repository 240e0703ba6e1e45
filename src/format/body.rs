//! A request's body as text: its messages, and every byte around them.

use std::fmt;
use std::ops::Range;

use serde_json::Value;

use super::WireFormat;
use super::json::{InvalidJson, JsonText, Node, View};
use super::wire::FIELDS;

/// A request's body as it came, of which only the messages can be changed: a JSON object with them
/// in `messages`, `input` or `contents`, or a list of them.
///
/// [`to_string`](ToString::to_string) gives the body with the messages as they are now, and every
/// other byte as it came; without a change all of it.
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
/// The body and each message are held once more than in the text that came.
#[derive(Clone, Debug)]
pub struct RequestBody {
    text: String,
    format: Option<WireFormat>,
    messages: Vec<JsonText>,
    /// Where each message stands in `text`.
    places: Vec<Range<usize>>,
    /// Where `tools` stand in `text`.
    tools: Vec<Range<usize>>,
}

/// A text in which there are no messages that could be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It is not JSON.
    #[error(transparent)]
    InvalidJson(#[from] InvalidJson),
    /// It holds no messages.
    #[error(
        "no messages: a body is a JSON list of messages, or an object with one in `messages`, `input` or `contents`"
    )]
    NoMessages,
    /// The key of its messages stands twice, and its readers may disagree on which of them counts.
    /// It is best passed on as it is.
    #[error("`{field}` stands twice in the body: leave one of them")]
    KeyTwice {
        /// The key.
        field: &'static str,
    },
}

impl RequestBody {
    /// Finds the messages of a body. An `input` that is a string, as the Responses API takes it, is
    /// a body without messages.
    ///
    /// # Errors
    ///
    /// The text is not JSON, is not a body, or has two lists of messages. No error holds a piece of
    /// it.
    pub fn parse(text: impl Into<String>) -> Result<Self, BodyError> {
        let document = JsonText::parse(text)?;
        let root = document.root();
        for field in FIELDS {
            if root.fields().filter(|(name, _)| *name == field).count() > 1 {
                return Err(BodyError::KeyTwice { field });
            }
        }
        let list = WireFormat::list(root).map(|(_, list)| list);
        let is_text = root
            .get("input")
            .is_some_and(|input| input.as_str().is_some());
        if list.is_none() && !is_text {
            return Err(BodyError::NoMessages);
        }
        let format = if list.is_some() {
            WireFormat::of(root)
        } else {
            Some(WireFormat::Responses)
        };
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

    /// The format of the messages, by [`WireFormat::detect`]'s rules; `None` if nothing says which
    /// it is, as of no messages.
    #[must_use]
    pub fn format(&self) -> Option<WireFormat> {
        self.format
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[JsonText] {
        &self.messages
    }

    /// The messages, to be changed through [`Spelled`](super::Spelled). Their number stays, so that
    /// there is a place for each.
    #[must_use]
    pub fn messages_mut(&mut self) -> &mut [JsonText] {
        &mut self.messages
    }

    /// The items of `tools`, to be counted with the messages. What `serde_json` does not read is
    /// given as its text.
    #[must_use]
    pub fn tools(&self) -> Vec<Value> {
        let tool = |place: &Range<usize>| {
            let text = &self.text[place.clone()];
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        };
        self.tools.iter().map(tool).collect()
    }
}

/// The whole body, with the messages as they are now.
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
