//! References to JSON, as a value or as its text.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

/// A JSON document as a message holds it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum JsonRef<'m> {
    /// A value. Its text is compact.
    Value(&'m Value),
    /// An object that a message holds as a map. Its text is compact.
    Object(&'m Map<String, Value>),
    /// The document's original text: valid JSON, except for arguments that a model wrote.
    Spelled(&'m str),
}

impl<'m> JsonRef<'m> {
    /// The document as a value, with numbers and duplicate keys as `serde_json` reads them. `None`
    /// for a text that `serde_json` refuses: numbers beyond the range of `f64`, more than 128
    /// levels, strings that are not valid Unicode, and for arguments that are not JSON.
    #[must_use]
    pub fn to_value(self) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value.clone()),
            Self::Object(fields) => Some(Value::Object(fields.clone())),
            Self::Spelled(text) => serde_json::from_str(text).ok(),
        }
    }

    /// The document's text: compact for values, unchanged for a text.
    #[must_use]
    pub fn text(self) -> Cow<'m, str> {
        // Several times as fast as a value's `Display`. No value fails.
        let text = match self {
            Self::Value(value) => serde_json::to_string(value),
            Self::Object(fields) => serde_json::to_string(fields),
            Self::Spelled(text) => return text.into(),
        };
        text.unwrap_or_default().into()
    }
}

impl<'m> From<&'m Value> for JsonRef<'m> {
    fn from(value: &'m Value) -> Self {
        Self::Value(value)
    }
}

impl<'m> From<&'m Map<String, Value>> for JsonRef<'m> {
    fn from(fields: &'m Map<String, Value>) -> Self {
        Self::Object(fields)
    }
}

impl fmt::Display for JsonRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for JsonRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Object(fields) => fields.fmt(f),
            Self::Spelled(text) => f.debug_tuple("Spelled").field(text).finish(),
        }
    }
}
