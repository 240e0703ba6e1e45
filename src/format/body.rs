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
/// Clones share the text of their messages.
#[derive(Clone, Debug)]
pub struct RequestBody {
    format: Option<WireFormat>,
    /// The messages as they came.
    originals: Vec<JsonText>,
    messages: Vec<JsonText>,
    /// The text without its messages.
    around: String,
    /// The place of each message in the text as it came.
    places: Vec<usize>,
    /// Byte ranges of the items of `tools` in `around`.
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
        Self::read(text.into(), &[])
    }

    /// Does the same as [`parse`](Self::parse). Of the messages with which both `text` and `earlier`
    /// begin, byte for byte, all but the last are not parsed again: they are shared with `earlier`,
    /// as they came there.
    ///
    /// ```
    /// # use offcut::format::RequestBody;
    /// let one = RequestBody::parse(r#"[{"role": "user"}, {"role": "assistant"}]"#)?;
    /// let text = r#"[{"role": "user"}, {"role": "assistant"}, {"role": "user"}]"#;
    /// let next = RequestBody::parse_after(&one, text)?;
    /// assert_eq!((next.messages().len(), next.to_string()), (3, text.to_owned()));
    /// # Ok::<(), offcut::format::BodyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`parse`](Self::parse).
    pub fn parse_after(earlier: &Self, text: &str) -> Result<Self, BodyError> {
        let whole = || Self::parse(text);
        let shared = earlier.last_shared(text);
        // A text over the limit of `JsonText` fails, however much of it is known.
        let Some((known, between)) = shared.filter(|_| u32::try_from(text.len()).is_ok()) else {
            return whole();
        };
        // The text without the messages that are known.
        let (first, place) = (earlier.places[0], earlier.places[known]);
        let rest = [&text[..first], &text[place..]].concat();
        let Ok(mut body) = Self::read(rest, &earlier.originals[..known]) else {
            return whole();
        };
        if body.places.first() != Some(&first) {
            // The messages of this body are in another list.
            return whole();
        }
        body.around.insert_str(first, between);
        for tool in body.tools.iter_mut().filter(|tool| tool.start >= first) {
            *tool = tool.start + between.len()..tool.end + between.len();
        }
        for at in &mut body.places {
            *at += place - first;
        }
        body.places.splice(..0, earlier.places[..known].to_vec());
        Ok(body)
    }

    /// Returns true if `text` probably begins with most messages of this body, so that
    /// [`parse_after`](Self::parse_after) is worth while. Compares one of them.
    #[must_use]
    pub fn probably_begins(&self, text: &str) -> bool {
        let nth = self.originals.len() * 3 / 4;
        let (Some(message), Some(&place)) = (self.originals.get(nth), self.places.get(nth)) else {
            return false;
        };
        let here = text.as_bytes().get(place..);
        here.is_some_and(|here| here.starts_with(message.as_str().as_bytes()))
    }

    /// The number of bytes that the messages take in memory, as they came, with their strings
    /// unescaped; clones and bodies parsed after this one share them.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.around.len() + self.originals.iter().map(JsonText::memory).sum::<usize>()
    }

    /// The last of the messages with which both `text` and this body, as it came, begin: its index,
    /// which is above 0, and all that stands between the messages from the first to it.
    fn last_shared(&self, text: &str) -> Option<(usize, &str)> {
        let first = *self.places.first()?;
        let (mut from, mut rest, mut last) = (0, text, None);
        for (nth, (before, message)) in self.pieces(&self.originals).enumerate() {
            let Some(after) = rest
                .strip_prefix(before)
                .and_then(|rest| rest.strip_prefix(message.as_str()))
            else {
                break;
            };
            from += before.len();
            last = Some((nth, &self.around[first..from]));
            rest = after;
        }
        last.filter(|(nth, _)| *nth > 0)
    }

    /// Each of `messages`, which are as many as the body has, and the text between it and the one
    /// before.
    fn pieces<'b>(
        &'b self,
        messages: &'b [JsonText],
    ) -> impl Iterator<Item = (&'b str, &'b JsonText)> {
        let (mut from, mut gone) = (0, 0);
        let places = messages.iter().zip(&self.originals).zip(&self.places);
        places.map(move |((message, original), &place)| {
            let before = &self.around[from..place - gone];
            from += before.len();
            gone += original.as_str().len();
            (before, message)
        })
    }

    /// Parses a body that has had the messages `known` before its first one.
    fn read(text: String, known: &[JsonText]) -> Result<Self, BodyError> {
        let document = JsonText::parse(text)?;
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
        let items = || list.into_iter().flat_map(|(_, list)| list.items());
        let parsed = items().map(Node::to_text);
        let originals: Vec<JsonText> = known.iter().cloned().chain(parsed).collect();
        let format = list.map_or(Some(WireFormat::Responses), |(field, _)| {
            WireFormat::of_messages(root, field, || originals.iter().map(Node::root))
        });
        let (mut around, mut places, mut end) = (String::new(), Vec::new(), 0);
        for message in items().map(Node::range) {
            around.push_str(&document.as_str()[end..message.start]);
            places.push(message.start);
            end = message.end;
        }
        let cut = end - around.len();
        around.push_str(&document.as_str()[end..]);
        let tools = root.get("tools").into_iter().flat_map(View::items);
        // All messages are in one list, so the tools come before or after all of them.
        let tools = tools.map(Node::range).map(|tool| {
            let before = if tool.start < end { 0 } else { cut };
            tool.start - before..tool.end - before
        });
        Ok(Self {
            format,
            messages: originals.clone(),
            places,
            tools: tools.collect(),
            originals,
            around,
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
        self.originals.iter().map(JsonText::as_str)
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
        let texts = self.tools.iter().map(|tool| &self.around[tool.clone()]);
        texts.map(tool).collect()
    }
}

/// Writes the whole body, with the current messages.
impl fmt::Display for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        for (before, message) in self.pieces(&self.messages) {
            f.write_str(before)?;
            f.write_str(message.as_str())?;
            at += before.len();
        }
        f.write_str(&self.around[at..])
    }
}
