//! Reading of JSON, for formats, from values and from text.

use serde_json::Value;

use crate::json::json_ref::JsonRef;

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number of any size.
    Number,
    /// A string, which may not be valid Unicode.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
}

/// A JSON value that is read in place. Of duplicate keys, the last counts.
pub trait View<'m>: Copy {
    /// The kind of the value.
    fn kind(self) -> Kind;
    /// The meaning of a string; `None` if the value is not a string, or not valid Unicode.
    fn as_str(self) -> Option<&'m str>;
    /// The value of `true` or `false`; `None` for anything else.
    fn as_bool(self) -> Option<bool>;
    /// The items of a list; empty for anything else.
    fn items(self) -> impl Iterator<Item = Self>;
    /// The fields of an object; empty for anything else.
    fn fields(self) -> impl Iterator<Item = (&'m str, Self)>;
    /// Several fields of an object, found in one go. A pass reads every message, and looking up
    /// each field on its own would take most of its time.
    fn pick<const N: usize>(self, names: [&str; N]) -> [Option<Self>; N] {
        let mut found = [None; N];
        for (name, value) in self.fields() {
            if let Some(nth) = names.iter().position(|wanted| *wanted == name) {
                found[nth] = Some(value);
            }
        }
        found
    }
    /// The whole value, to be shown.
    fn json(self) -> JsonRef<'m>;

    /// A field of an object.
    fn get(self, name: &str) -> Option<Self> {
        let [found] = self.pick([name]);
        found
    }

    /// Returns true for a list.
    fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    /// Returns true for an object.
    fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// Returns true for an object with this field.
    fn has(self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A text field; empty if it is missing or not text.
    fn text(self, name: &str) -> &'m str {
        self.get(name).and_then(Self::as_str).unwrap_or_default()
    }
}

impl<'m> View<'m> for &'m Value {
    fn kind(self) -> Kind {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Number(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
        }
    }

    fn as_str(self) -> Option<&'m str> {
        Value::as_str(self)
    }

    fn as_bool(self) -> Option<bool> {
        Value::as_bool(self)
    }

    fn items(self) -> impl Iterator<Item = Self> {
        self.as_array().into_iter().flatten()
    }

    fn fields(self) -> impl Iterator<Item = (&'m str, Self)> {
        self.as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value))
    }

    fn get(self, name: &str) -> Option<Self> {
        Value::get(self, name)
    }

    fn json(self) -> JsonRef<'m> {
        JsonRef::Value(self)
    }
}
