//! Parts of messages as values, for handlers and for storing.

use crate::json::JsonRef;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use super::{Data, PartRef};
use crate::content::Part;

/// A part as a handler gets it. JSON that can't be read as a value becomes text, and invalid base64 stays as it is.
impl From<PartRef<'_>> for Part {
    fn from(part: PartRef<'_>) -> Self {
        let read = |json: JsonRef<'_>, part: fn(Value) -> Self| {
            json.to_value()
                .map_or_else(|| json.to_string().into(), part)
        };
        match part {
            PartRef::Text(text) => Self::Text(text.to_owned()),
            PartRef::Json(json) => read(json, Self::Json),
            PartRef::Media { mime, data } => Self::Media {
                mime: mime.to_owned(),
                data: decode(data).unwrap_or_else(|| raw(data)),
            },
            PartRef::Link { mime, url } => Self::Link {
                mime: mime.map(str::to_owned),
                url: url.to_owned(),
            },
            PartRef::Opaque(json) => read(json, Self::Opaque),
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

/// The bytes of media. Base64 is decoded only if encoding gives the same text again.
pub(crate) fn decode(data: Data<'_>) -> Option<Bytes> {
    match data {
        Data::Bytes(bytes) => Some(bytes.clone()),
        Data::Base64(text) => STANDARD.decode(text).ok().map(Bytes::from),
    }
}

/// The bytes of media as the message spells them.
pub(crate) fn raw(data: Data<'_>) -> Bytes {
    match data {
        Data::Bytes(bytes) => bytes.clone(),
        Data::Base64(text) => Bytes::copy_from_slice(text.as_bytes()),
    }
}
