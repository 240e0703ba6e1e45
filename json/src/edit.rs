//! Changes of single fields, made once for values and for text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::json_ref::JsonRef;
use crate::scan::scan;
use crate::text::{JsonText, Node};
use crate::view::View;

/// A step from a value to one inside it.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The field of this name.
    Field(&'static str),
    /// The item at this index.
    Item(usize),
}

/// A change of one field of an object: `None` as `value` removes it.
#[derive(Debug)]
pub struct Edit<'m> {
    /// Path from the message to the object.
    pub path: Vec<Step>,
    /// Name of the field.
    pub field: Cow<'static, str>,
    /// Its new value.
    pub value: Option<New<'m>>,
}

/// A new value of a field.
#[derive(Debug)]
pub enum New<'m> {
    /// A value.
    Value(Value),
    /// JSON text from a caller, which may be invalid.
    Text(String),
    /// A list, and fields of the message that move to its last item.
    Parts(Vec<Value>, Vec<(&'m str, JsonRef<'m>)>),
}

impl<'m> Edit<'m> {
    /// Sets `field` of the object at `path` to `value`.
    #[must_use]
    pub fn set(path: Vec<Step>, field: impl Into<Cow<'static, str>>, value: New<'m>) -> Self {
        Self {
            path,
            field: field.into(),
            value: Some(value),
        }
    }

    /// Removes `field` of the object at `path`.
    #[must_use]
    pub fn remove(path: Vec<Step>, field: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path,
            field: field.into(),
            value: None,
        }
    }
}

impl New<'_> {
    fn into_value(self) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Text(text) => serde_json::from_str(&text).ok(),
            Self::Parts(mut parts, marks) => {
                if let Some(Value::Object(last)) = parts.last_mut() {
                    for (name, value) in marks {
                        last.insert(name.to_owned(), value.to_value()?);
                    }
                }
                Some(Value::Array(parts))
            }
        }
    }

    fn into_text(self) -> Option<String> {
        match self {
            Self::Value(value) => spelled(&value),
            Self::Text(text) => scan(&text).is_ok().then_some(text),
            Self::Parts(mut parts, marks) => {
                let last = parts.pop();
                let mut items: Vec<String> = parts.iter().map(spelled).collect::<Option<_>>()?;
                items.extend(match last {
                    Some(Value::Object(fields)) => Some(with_marks(&fields, &marks)?),
                    Some(other) => Some(spelled(&other)?),
                    None => None,
                });
                Some(format!("[{}]", items.join(",")))
            }
        }
    }
}

/// The JSON of a value, written several times as fast as by [`fmt::Display`](std::fmt::Display).
fn spelled(value: &Value) -> Option<String> {
    serde_json::to_string(value).ok()
}

fn with_marks(fields: &Map<String, Value>, marks: &[(&str, JsonRef<'_>)]) -> Option<String> {
    let own = fields
        .iter()
        .map(|(name, value)| Some((name.as_str(), spelled(value)?)));
    let marks = marks
        .iter()
        .map(|(name, value)| Some((*name, value.to_string())));
    let all = own.chain(marks);
    let all = all.map(|field| {
        let (name, value) = field?;
        Some(format!("{}:{value}", Value::from(name)))
    });
    let all: Vec<String> = all.collect::<Option<_>>()?;
    Some(format!("{{{}}}", all.join(",")))
}

/// Edits that no longer borrow from the message; `None` if one of them can't be made.
type Made<T> = Option<Vec<(Vec<Step>, Cow<'static, str>, Option<T>)>>;

fn detach<'m, T>(edits: Vec<Edit<'m>>, into: impl Fn(New<'m>) -> Option<T>) -> Made<T> {
    let make = |Edit { path, field, value }| {
        let value = match value {
            Some(value) => Some(into(value)?),
            None => None,
        };
        Some((path, field, value))
    };
    edits.into_iter().map(make).collect()
}

/// Applies all edits to a value, or none.
pub fn put_into_value(
    message: &mut Value,
    edits: impl for<'m> FnOnce(&'m Value) -> Option<Vec<Edit<'m>>>,
) {
    let Some(edits) = edits(message).and_then(|edits| detach(edits, New::into_value)) else {
        return;
    };
    for (path, field, value) in edits {
        let object = path
            .iter()
            .try_fold(&mut *message, |value, step| match step {
                Step::Field(name) => value.get_mut(name),
                Step::Item(nth) => value.get_mut(nth),
            });
        let Some(Value::Object(fields)) = object else {
            continue;
        };
        match value {
            Some(value) => drop(fields.insert(field.into_owned(), value)),
            // `remove` would change the order of the other fields where order is kept.
            None => fields.retain(|name, _| *name != field),
        }
    }
}

/// Applies all edits to a text, or none. No other byte changes.
pub fn put_into_text(
    message: &mut JsonText,
    edits: impl for<'m> FnOnce(Node<'m>) -> Option<Vec<Edit<'m>>>,
) {
    let Some(edits) = edits(Node::root(message)).and_then(|edits| detach(edits, New::into_text))
    else {
        return;
    };
    let added: usize = edits
        .iter()
        .map(|(_, field, value)| field.len() + value.as_ref().map_or(0, String::len) + 8)
        .sum();
    if u32::try_from(message.as_str().len() + added).is_err() {
        return;
    }
    for (path, field, value) in edits {
        let object = path
            .iter()
            .try_fold(Node::root(message), |node, step| match step {
                Step::Field(name) => node.get(name),
                Step::Item(nth) => node.items().nth(*nth),
            });
        let Some(object) = object
            .filter(|object| object.is_object())
            .map(|object| object.at)
        else {
            continue;
        };
        match value {
            Some(value) => message.set(object, &field, &value),
            None => message.remove(object, &field),
        };
    }
}
