//! The pieces of a message.

use std::fmt;

use bytes::Bytes;

use super::json::{JsonRef, View};
use crate::content::Part;

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

impl<'m> Call<'m> {
    /// A call that is not signed.
    pub(super) fn new(id: &'m str, name: &'m str, arguments: Arguments<'m>) -> Self {
        Self {
            id,
            name,
            arguments,
            is_signed: false,
            is_fixed: false,
        }
    }
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
    pub(super) fn of(field: Option<impl View<'m>>) -> Self {
        let Some(field) = field else {
            return Self::Text("");
        };
        field
            .as_str()
            .map_or_else(|| Self::Json(field.json()), Self::Text)
    }

    /// A field that holds them as JSON; empty text if there is none.
    pub(super) fn json(field: Option<impl View<'m>>) -> Self {
        field.map_or(Self::Text(""), |field| Self::Json(field.json()))
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

impl<'m> ResultHead<'m> {
    /// That of a result of which the message says only which call it answers.
    pub(super) fn new(id: &'m str) -> Self {
        Self {
            id,
            name: None,
            is_error: false,
            is_fixed: false,
        }
    }
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

impl Data<'_> {
    /// How many bytes it is, padding and line breaks of its base64 aside.
    pub(crate) fn decoded_len(self) -> u64 {
        match self {
            Self::Base64(text) => text.trim_end_matches('=').len() as u64 * 3 / 4,
            Self::Bytes(bytes) => bytes.len() as u64,
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
