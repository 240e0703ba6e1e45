//! The pieces of a message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::json::JsonRef;

use crate::content::Part;

/// The author of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions: system and developer messages.
    System,
    /// A person, or anything that stands in for one.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A piece of a message. A message is shown as its pieces, in order, all borrowed from it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Piece<'m> {
    /// The author of the pieces up to the next `Role`. Each message begins with one. A message with
    /// pieces of several authors, such as a user message with results and text, has one before each
    /// group.
    Role(Role),
    /// A tool call.
    Call(Call<'m>),
    /// The head of a tool result, which opens a result slot. The [`Content`](Piece::Content) after
    /// it, up to the next `Result` or `Role`, belongs to the slot.
    Result(ResultHead<'m>),
    /// Content of the open result slot, or of the message itself if no slot is open.
    Content(PartRef<'m>),
}

/// The new content of a piece of a message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NewPiece {
    /// The content of a result slot.
    Result(Vec<Part>),
    /// The arguments of a call: JSON.
    Arguments(String),
    /// A text of a user.
    UserText(String),
}

/// A tool call as a message holds it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'m> {
    /// The call's id; empty if the format or the provider has none.
    pub id: &'m str,
    /// The tool's name.
    pub name: &'m str,
    /// The arguments of the call. Those that a message holds as a text are [`JsonRef::Spelled`], and may be invalid JSON,
    /// since a model wrote them, or not meant as JSON. They are empty if the message has none.
    pub arguments: JsonRef<'m>,
    /// True if the provider signed the call, so that changing its arguments would invalidate it.
    pub is_signed: bool,
    /// True if a program of the provider made the call, and gets its result. Neither is part of the
    /// model's context: both stay whole, and neither counts.
    pub is_for_program: bool,
    /// True if the arguments must stay as they are: their shape is prescribed, a key of the message occurs
    /// twice, or a string is not valid Unicode, so a change could alter what else the message says. Replacing them
    /// does nothing.
    pub is_fixed: bool,
}

impl<'m> Call<'m> {
    /// A call that is not signed.
    pub(super) fn new(id: &'m str, name: &'m str, arguments: JsonRef<'m>) -> Self {
        Self {
            id,
            name,
            arguments,
            is_signed: false,
            is_for_program: false,
            is_fixed: false,
        }
    }
}

/// A result as a message holds it, without its content.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultHead<'m> {
    /// The id of the call that the result answers; empty if the format or the provider has none.
    pub id: &'m str,
    /// The tool's name, if the message has it.
    pub name: Option<&'m str>,
    /// True if the message marks the result as an error.
    pub is_error: bool,
    /// True if the result goes to a program of the provider. So does the result of a call
    /// [from one](Call::is_for_program).
    pub is_for_program: bool,
    /// True if the content must stay as it is, for the same reasons as a [`Call`]'s arguments, or
    /// because it loads tools. Replacing it does nothing.
    pub is_fixed: bool,
}

/// A [`Part`] as a message holds it.
#[derive(Clone, Copy, Debug)]
pub enum PartRef<'m> {
    /// Text.
    Text(&'m str),
    /// A JSON document.
    Json(JsonRef<'m>),
    /// An image, an audio clip or a file inside the message.
    Media {
        /// Its media type.
        mime: &'m str,
        /// Its bytes.
        data: Data<'m>,
    },
    /// A link to an image, an audio clip or a file.
    Link {
        /// Its media type, if the message has it.
        mime: Option<&'m str>,
        /// Its address.
        url: &'m str,
    },
    /// A part that the format does not know.
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

impl Data<'_> {
    /// Number of decoded bytes. Padding does not count; line breaks in base64 count as if they were
    /// data.
    pub(crate) fn decoded_len(self) -> u64 {
        match self {
            Self::Base64(text) => text.trim_end_matches('=').len() as u64 * 3 / 4,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// The decoded bytes. Base64 is decoded only if encoding gives the same text again.
    pub(crate) fn decode(self) -> Option<Bytes> {
        match self {
            Self::Base64(text) => STANDARD.decode(text).ok().map(Bytes::from),
            Self::Bytes(bytes) => Some(bytes.clone()),
        }
    }

    /// The bytes as the message spells them.
    pub(crate) fn raw(self) -> Bytes {
        match self {
            Self::Base64(text) => Bytes::copy_from_slice(text.as_bytes()),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
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

/// A part as a handler gets it. JSON that can't be read as a value becomes text, and invalid base64 stays as it is.
impl From<PartRef<'_>> for Part {
    fn from(part: PartRef<'_>) -> Self {
        let spelled = |json: JsonRef<'_>| Self::Text(json.to_string());
        match part {
            PartRef::Text(text) => Self::Text(text.to_owned()),
            PartRef::Json(json) => json.to_value().map_or_else(|| spelled(json), Self::Json),
            PartRef::Media { mime, data } => Self::Media {
                mime: mime.to_owned(),
                data: data.decode().unwrap_or_else(|| data.raw()),
            },
            PartRef::Link { mime, url } => Self::Link {
                mime: mime.map(str::to_owned),
                url: url.to_owned(),
            },
            PartRef::Opaque(json) => json.to_value().map_or_else(|| spelled(json), Self::Opaque),
        }
    }
}

/// A part of a message is equal to what a handler would get of it.
impl PartialEq<Part> for PartRef<'_> {
    fn eq(&self, other: &Part) -> bool {
        match *self {
            Self::Text(text) => matches!(other, Part::Text(other) if other == text),
            part => {
                let own: Part = part.into();
                own == *other
            }
        }
    }
}
