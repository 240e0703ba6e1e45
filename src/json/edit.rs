//! Changes of single fields, made once for values and for text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::json::json_ref::JsonRef;
use crate::json::text::{JsonText, Node};
use crate::json::view::View;

/// A change of one field of an object.
#[derive(Debug)]
pub struct Edit<'m> {
    /// The JSON pointer from the message to the object, such as `/content/0`.
    pub path: String,
    /// Name of the field.
    pub field: Cow<'static, str>,
    /// Its new value; `None` removes it.
    pub value: Option<New<'m>>,
}

/// A new value of a field, or an item of one.
#[derive(Debug)]
pub enum New<'m> {
    /// A value.
    Value(Value),
    /// JSON text from a caller, which may be invalid.
    Text(String),
    /// A value of the message, as it is spelled there.
    Kept(JsonRef<'m>),
    /// An object.
    Object(Vec<(String, Self)>),
    /// A list.
    List(Vec<Self>),
}

impl<'m> Edit<'m> {
    /// Sets `field` of the object at `path` to `value`.
    #[must_use]
    pub fn set(path: String, field: impl Into<Cow<'static, str>>, value: New<'m>) -> Self {
        Self {
            path,
            field: field.into(),
            value: Some(value),
        }
    }

    /// Removes `field` of the object at `path`.
    #[must_use]
    pub fn remove(path: String, field: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path,
            field: field.into(),
            value: None,
        }
    }
}

impl New<'_> {
    /// The value; `None` if `serde_json` refuses a text in it.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        Some(match self {
            Self::Value(value) => value,
            Self::Text(text) => serde_json::from_str(&text).ok()?,
            Self::Kept(kept) => kept.to_value()?,
            Self::Object(fields) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, value)| Some((name, value.into_value()?)));
                fields.collect::<Option<Map<_, _>>>()?.into()
            }
            Self::List(items) => items
                .into_iter()
                .map(Self::into_value)
                .collect::<Option<_>>()?,
        })
    }

    fn into_text(self) -> String {
        match self {
            Self::Value(value) => value.to_string(),
            Self::Text(text) => text,
            Self::Kept(kept) => kept.to_string(),
            Self::Object(fields) => {
                let fields = fields.into_iter();
                let fields = fields
                    .map(|(name, value)| Value::from(name).to_string() + ":" + &value.into_text());
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
            Self::List(items) => {
                let items = items.into_iter().map(Self::into_text);
                format!("[{}]", items.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Applies all edits to a value, or none.
pub fn put_into_value(
    message: &mut Value,
    edits: impl for<'m> FnOnce(&'m Value) -> Option<Vec<Edit<'m>>>,
) {
    // They no longer borrow from the message.
    let owned = |Edit { path, field, value }: Edit<'_>| {
        let value = match value {
            Some(value) => Some(value.into_value()?),
            None => None,
        };
        Some((path, field, value))
    };
    let edits = edits(message).into_iter().flatten().map(owned);
    for (path, field, value) in edits.collect::<Option<Vec<_>>>().unwrap_or_default() {
        let Some(Value::Object(fields)) = message.pointer_mut(&path) else {
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
    let Some(edits) = edits(Node::root(message)) else {
        return;
    };
    let mut changed = message.clone();
    for Edit { path, field, value } in edits {
        let Some(object) = at(&changed, &path).filter(|object| object.is_object()) else {
            continue;
        };
        let text = match value {
            // Alone, so that it can't end the object.
            Some(value) => {
                JsonText::parse(value.into_text()).map(|value| with(object, &field, value.as_str()))
            }
            None => Ok(without(object, &field)),
        };
        let Ok(parsed) = text.and_then(JsonText::parse) else {
            return;
        };
        changed = parsed;
    }
    *message = changed;
}

/// The value at a JSON pointer.
fn at<'m>(message: &'m JsonText, path: &str) -> Option<Node<'m>> {
    let mut steps = path.split('/').skip(1);
    steps.try_fold(Node::root(message), |node, step| match step.parse() {
        Ok(nth) if node.is_array() => node.items().nth(nth),
        _ => node.get(step),
    })
}

/// The message with `field` of `object` set to the JSON `value`: in place if the field exists,
/// otherwise as the last field.
fn with(object: Node<'_>, field: &str, value: &str) -> String {
    if let Some(old) = object.get(field) {
        return object.json.replaced(old.range(), value);
    }
    // After the last value, so that whitespace before the brace stays there.
    let (at, comma) = match object.fields().last() {
        Some((_, last)) => (last.range().end, ","),
        None => (object.range().start + 1, ""),
    };
    let added = format!("{comma}{}:{value}", Value::from(field));
    object.json.replaced(at..at, &added)
}

/// The message without `field` of `object`, and without its comma.
fn without(object: Node<'_>, field: &str) -> String {
    let keys: Vec<Node<'_>> = object.keys().collect();
    let at = keys.iter().rposition(|key| key.as_str() == Some(field));
    let range = at.map_or(0..0, |at| {
        let (start, end) = (keys[at].range().start, keys[at].value().range().end);
        match (at.checked_sub(1), keys.get(at + 1)) {
            (Some(before), _) => keys[before].value().range().end..end,
            (None, Some(after)) => start..after.range().start,
            (None, None) => start..end,
        }
    });
    object.json.replaced(range, "")
}
