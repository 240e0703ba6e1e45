//! Changes of single fields, made once for values and for text.

use std::borrow::Cow;

use serde_json::Value;

use crate::json::json_ref::JsonRef;
use crate::json::text::{JsonText, Node};
use crate::json::view::View;

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
    /// A value, and fields of the message that move to it if it is an object.
    With(Value, Vec<(&'m str, JsonRef<'m>)>),
    /// A list.
    List(Vec<Self>),
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
    /// The value; `None` if `serde_json` refuses a text in it.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Text(text) => serde_json::from_str(&text).ok(),
            Self::Kept(kept) => kept.to_value(),
            Self::With(mut value, moved) => {
                if let Value::Object(fields) = &mut value {
                    for (name, value) in moved {
                        fields.insert(name.to_owned(), value.to_value()?);
                    }
                }
                Some(value)
            }
            Self::List(items) => items.into_iter().map(Self::into_value).collect(),
        }
    }

    fn into_text(self) -> Option<String> {
        match self {
            Self::Value(value) => Some(value.to_string()),
            Self::Text(text) => JsonText::parse(text).ok().map(JsonText::into_string),
            Self::Kept(kept) => Some(kept.to_string()),
            Self::With(Value::Object(own), moved) => {
                let stays = |name: &str| moved.iter().all(|(moved, _)| *moved != name);
                let own = own.iter().filter(|(name, _)| stays(name));
                let own = own.map(|(name, value)| (name.as_str(), value.to_string()));
                let moved = moved.iter().map(|(name, value)| (*name, value.to_string()));
                let all = own.chain(moved);
                let all = all.map(|(name, value)| format!("{}:{value}", Value::from(name)));
                Some(format!("{{{}}}", all.collect::<Vec<_>>().join(",")))
            }
            Self::With(value, _) => Some(value.to_string()),
            Self::List(items) => {
                let items = items.into_iter().map(Self::into_text);
                let items: Vec<String> = items.collect::<Option<_>>()?;
                Some(format!("[{}]", items.join(",")))
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
    let Some(edits) = edits(Node::root(message)) else {
        return;
    };
    let mut changed = message.clone();
    for Edit { path, field, value } in edits {
        let object = path
            .iter()
            .try_fold(Node::root(&changed), |node, step| match step {
                Step::Field(name) => node.get(name),
                Step::Item(nth) => node.items().nth(*nth),
            });
        let Some(object) = object.filter(|object| object.is_object()) else {
            continue;
        };
        let text = match value.map(New::into_text) {
            Some(Some(value)) => with(object, &field, &value),
            Some(None) => return,
            None => without(object, &field),
        };
        let Ok(parsed) = JsonText::parse(text) else {
            return;
        };
        changed = parsed;
    }
    *message = changed;
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
