//! Tool calls and the content that tools return.

use std::fmt;
use std::string::FromUtf8Error;

use crate::backend::{debug_as_chain, with_source};
use crate::preview::text::decoding::{is_utf16, text_of};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One piece of a tool result or of a user's message.
///
/// ```
/// use offcut::Part;
/// let part: Part = serde_json::from_str(r#"{"type":"text","value":"hello"}"#)?;
/// assert_eq!(part, Part::Text("hello".into()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum Part {
    /// Text, which is counted, truncated and cleared.
    Text(String),
    /// A JSON document: counted and stored as compact text.
    Json(Value),
    /// An image, audio clip or file inside the message itself.
    Media {
        /// Its media type, such as `image/png`.
        mime: String,
        /// Its bytes; base64 in JSON.
        #[serde(with = "base64_bytes")]
        data: Bytes,
    },
    /// An image, audio clip or file that the message only links to.
    Link {
        /// Its media type, if the message gives one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime: Option<String>,
        /// Its address.
        url: String,
    },
    /// A part of unknown type, passed on unchanged.
    Opaque(Value),
}

/// All texts among `parts`, concatenated.
pub(crate) fn texts_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

mod base64_bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(data: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(data))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD
            .decode(text)
            .map(Bytes::from)
            .map_err(D::Error::custom)
    }
}

/// A model's request to a tool. The model wrote all of it: untrusted data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id that pairs the call with its result. Some providers repeat ids, and some leave them
    /// empty.
    #[serde(default)]
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Arguments as the model wrote them, usually JSON.
    #[serde(default)]
    pub arguments: String,
    /// True if a program of the provider made the call, as its `caller` says, and gets the result:
    /// that is then never truncated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_for_program: bool,
}

impl ToolCall {
    /// A call of the tool `name`, with `arguments` as JSON text.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            is_for_program: false,
        }
    }
}

/// A piece of a streamed result.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Bytes of text. A chunk may end inside a character.
    Bytes(Bytes),
    /// A whole part. The bytes before it and after it are two texts.
    Part(Part),
}

/// The content of a tool's result.
pub enum Body {
    /// All the content.
    Parts(Vec<Part>),
    /// All the content, with text in bytes.
    Chunks(Vec<Chunk>),
    /// Content as it arrives.
    Stream(BoxStream<'static, Result<Chunk, ToolError>>),
}

impl Body {
    /// All content up to the end, or up to the error that ended the stream.
    pub(crate) async fn gather(self) -> (Gathered, Option<ToolError>) {
        let mut gathered = Gathered::default();
        let mut stream = match self {
            Self::Parts(parts) => {
                gathered.parts = parts.into_iter().map(|part| (part, None)).collect();
                return (gathered, None);
            }
            Self::Chunks(chunks) => stream::iter(chunks).map(Ok).boxed(),
            Self::Stream(stream) => stream,
        };
        loop {
            match stream.try_next().await {
                Ok(Some(chunk)) => gathered.push(chunk),
                Ok(None) => return (gathered, None),
                Err(error) => return (gathered, Some(error)),
            }
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts(parts) => f.debug_tuple("Parts").field(parts).finish(),
            Self::Chunks(chunks) => f.debug_tuple("Chunks").field(chunks).finish(),
            Self::Stream(_) => f.write_str("Stream(..)"),
        }
    }
}

/// Maximum length in bytes of a media type that is shown.
const MAX_MIME: usize = 64;

/// A tool's result.
///
/// ```
/// use offcut::ToolOutput;
/// let fine = ToolOutput::from("12 files");
/// let failed = ToolOutput::error("no such directory");
/// assert!(!fine.is_error && failed.is_error);
/// ```
#[derive(Debug)]
pub struct ToolOutput {
    /// The content.
    pub body: Body,
    /// True if the tool reports that it failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// A result of several parts.
    #[must_use]
    pub fn parts(parts: Vec<Part>) -> Self {
        Self {
            body: Body::Parts(parts),
            is_error: false,
        }
    }

    /// An error result.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            body: Body::Parts(vec![Part::Text(text.into())]),
            is_error: true,
        }
    }

    /// Text in raw bytes, which may not be UTF-8.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        match String::from_utf8(bytes.into()) {
            Ok(text) => Self::from(text),
            Err(error) => Self {
                body: Body::Chunks(vec![Chunk::Bytes(error.into_bytes().into())]),
                is_error: false,
            },
        }
    }

    /// The same with bytes in place of the media that a message does not [take](crate::format::LoopFormat::takes), each
    /// after a text that names it: the message could only spell them. Media in a stream stay.
    pub(crate) fn without_media(self, takes: impl Fn(&Part) -> bool) -> Self {
        let is_media = |part: &Part| matches!(part, Part::Media { .. }) && !takes(part);
        let parts = match self.body {
            Body::Parts(parts) if parts.iter().any(is_media) => parts,
            body => return Self { body, ..self },
        };
        let mut chunks = Vec::with_capacity(parts.len() + 1);
        for part in parts {
            let is_media = is_media(&part);
            match part {
                Part::Media { mime, data } if is_media => {
                    // A tool wrote it.
                    let is_plain =
                        mime.len() <= MAX_MIME && mime.bytes().all(|byte| byte.is_ascii_graphic());
                    let mime = if is_plain { &mime } else { "media" };
                    let name = format!("[{mime}, {} B]", data.len());
                    chunks.extend([Chunk::Part(name.into()), Chunk::Bytes(data)]);
                }
                part => chunks.push(Chunk::Part(part)),
            }
        }
        Self {
            body: Body::Chunks(chunks),
            is_error: self.is_error,
        }
    }

    /// A result that arrives in chunks.
    pub fn stream(
        chunks: impl stream::Stream<Item = Result<Chunk, ToolError>> + Send + 'static,
    ) -> Self {
        Self {
            body: Body::Stream(chunks.boxed()),
            is_error: false,
        }
    }

    /// The whole content, and the error that ended its stream early, if any.
    ///
    /// UTF-16 becomes text, and other bytes that are not UTF-8 become replacement characters;
    /// [`ToolReduction::truncate`](crate::ToolReduction::truncate) stores the original bytes first.
    pub async fn into_parts(self) -> (Vec<Part>, Option<ToolError>) {
        let (gathered, interrupted) = self.body.gather().await;
        let parts = gathered.into_parts().into_iter().map(|(part, _)| part);
        (parts.collect(), interrupted)
    }
}

/// Chunks put together: neighbouring bytes become one text.
#[derive(Default)]
pub(crate) struct Gathered {
    /// Beside a text are its bytes if they are not UTF-8.
    parts: Vec<(Part, Option<Bytes>)>,
    /// The bytes of the last text, which may continue.
    open: Vec<u8>,
}

impl Gathered {
    pub(crate) fn push(&mut self, chunk: Chunk) {
        match chunk {
            // The first ones are not copied.
            Chunk::Bytes(bytes) if self.open.is_empty() => self.open = bytes.into(),
            Chunk::Bytes(bytes) => self.open.extend_from_slice(&bytes),
            Chunk::Part(part) => {
                self.close();
                self.parts.push((part, None));
            }
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.parts.push(text_part(std::mem::take(&mut self.open)));
        }
    }

    /// Returns true if the last chunk was bytes.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Number of parts that do not continue.
    pub(crate) fn count(&self) -> usize {
        self.parts.len()
    }

    /// The parts. Beside a text are its bytes if they are not UTF-8.
    pub(crate) fn into_parts(mut self) -> Vec<(Part, Option<Bytes>)> {
        self.close();
        self.parts
    }

    /// The same content in few chunks.
    pub(crate) fn into_chunks(self) -> impl Iterator<Item = Chunk> {
        let chunk =
            |(part, bytes): (Part, Option<Bytes>)| bytes.map_or(Chunk::Part(part), Chunk::Bytes);
        let open = Chunk::Bytes(self.open.into());
        self.parts.into_iter().map(chunk).chain([open])
    }
}

/// The text of `bytes` as a part, and the bytes if they are not UTF-8.
pub(crate) fn text_part(bytes: Vec<u8>) -> (Part, Option<Bytes>) {
    let text = match is_utf16(&bytes) {
        true => Err(bytes),
        false => String::from_utf8(bytes).map_err(FromUtf8Error::into_bytes),
    };
    match text {
        Ok(text) => (Part::Text(text), None),
        Err(bytes) => (text_of(&bytes).into_owned().into(), Some(bytes.into())),
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::parts(vec![Part::Text(text)])
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

/// The text shown to the model for a failed call, marked as an error.
impl<T: Into<ToolOutput>> From<Result<T, ToolError>> for ToolOutput {
    fn from(result: Result<T, ToolError>) -> Self {
        result.map_or_else(|error| Self::error(error.to_string()), Into::into)
    }
}

/// A failed tool call. The model is shown its text.
#[derive(thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    message: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

debug_as_chain!(ToolError);
with_source!(ToolError);

impl ToolError {
    /// An error with a text that the model can act on.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// Keeps the cause, with another message.
    pub(crate) fn with_message(mut self, message: impl FnOnce(&str) -> String) -> Self {
        self.message = message(&self.message);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn chunks_that_split_a_character_are_one_text() {
        let euro = "a€b".as_bytes();
        let chunks = [euro[..2].to_vec(), euro[2..].to_vec()].map(|b| Ok(Chunk::Bytes(b.into())));
        let (parts, error) = ToolOutput::stream(stream::iter(chunks)).into_parts().await;
        assert_eq!(parts, [Part::Text("a€b".into())]);
        assert!(error.is_none());
    }

    #[tokio::test]
    async fn content_before_an_error_is_kept() {
        let chunks = [
            Ok(Chunk::Bytes("ab".into())),
            Err(ToolError::new("pipe broke")),
        ];
        let (parts, error) = ToolOutput::stream(stream::iter(chunks)).into_parts().await;
        assert_eq!(parts, [Part::Text("ab".into())]);
        assert_eq!(error.unwrap().to_string(), "pipe broke");
    }

    #[test]
    fn every_part_survives_json() {
        let parts = vec![
            Part::Text("t".into()),
            Part::Json(serde_json::json!({"a": 1})),
            Part::Media {
                mime: "image/png".into(),
                data: Bytes::from_static(&[0, 255]),
            },
            Part::Link {
                mime: None,
                url: "https://example.org/a.png".into(),
            },
            Part::Opaque(serde_json::json!({"x": []})),
        ];
        let json = serde_json::to_string(&parts).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Part>>(&json).unwrap(), parts);
    }
}
