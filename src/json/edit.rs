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

    /// The JSON of the value; `None` if a text in it is not JSON.
    fn into_text(self) -> Option<String> {
        Some(match self {
            Self::Value(value) => value.to_string(),
            // Alone, so that it can't end what is around it.
            Self::Text(text) => JsonText::parse(text).ok()?.into_string(),
            Self::Kept(kept) => kept.to_string(),
            Self::Object(fields) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, value)| {
                    Some(format!("{}:{}", Value::from(name), value.into_text()?))
                });
                format!("{{{}}}", fields.collect::<Option<Vec<_>>>()?.join(","))
            }
            Self::List(items) => {
                let items = items.into_iter().map(Self::into_text);
                format!("[{}]", items.collect::<Option<Vec<_>>>()?.join(","))
            }
        })
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

/// The value at a JSON pointer, as [`Value::pointer`] reads it.
fn at<'m>(message: &'m JsonText, path: &str) -> Option<Node<'m>> {
    let mut steps = path.split('/');
    steps.next().filter(|before| before.is_empty())?;
    steps.try_fold(Node::root(message), |node, step| {
        if node.is_object() {
            return node.get(&step.replace("~1", "/").replace("~0", "~"));
        }
        let is_index = step == "0" || !step.starts_with(['+', '0']);
        node.items().nth(step.parse().ok().filter(|_| is_index)?)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_leads_to_the_same_in_values_and_texts() {
        let message =
            json!({"": {"x": {}}, "a/b": {"~": [{}, {}]}, "~1": {}, "0": {"0": {}}, "l": [[{}]]});
        for path in [
            "",
            "/",
            "//x",
            "/a~1b",
            "/a~1b/~0/1",
            "/~01",
            "/~1",
            "/0",
            "/0/0",
            "/l/0/0",
            "/l/0",
            "/l/-",
            "/l/+0/0",
            "/l/00/0",
            "/l/0/1",
            "/l//0",
            "x",
            "a~1b",
            "/a~1b/~0/",
            "/l/0/0/",
        ] {
            let edits = || {
                Some(vec![Edit::set(
                    path.to_owned(),
                    "new",
                    New::Value(1.into()),
                )])
            };
            let (mut value, mut text) = (
                message.clone(),
                JsonText::parse(message.to_string()).unwrap(),
            );
            put_into_value(&mut value, |_| edits());
            put_into_text(&mut text, |_| edits());
            let changed: Value = serde_json::from_str(text.as_str()).unwrap();
            assert_eq!(changed, value, "{path}");
            let is_there = message.pointer(path).is_some_and(Value::is_object);
            assert_eq!(value != message, is_there, "{path}");
        }
    }

    #[test]
    fn a_text_can_not_end_what_is_around_it() {
        let texts = |text: &str| {
            let text = || New::Text(text.to_owned());
            [
                text(),
                New::List(vec![text()]),
                New::Object(vec![("a".to_owned(), text())]),
            ]
        };
        for (spelled, is_put) in [
            ("1, \"b\": 2", false),
            ("1, 2", false),
            ("1}", false),
            ("1]", false),
            ("", false),
            ("1 /*", false),
            (" {\"a\": 1.00}\n", true),
        ] {
            for new in texts(spelled) {
                let mut text = JsonText::parse("{}").unwrap();
                put_into_text(&mut text, |_| {
                    Some(vec![Edit::set(String::new(), "x", new)])
                });
                assert_eq!(text.as_str() != "{}", is_put, "{spelled}");
                assert!(!is_put || text.as_str().contains(spelled), "{spelled}");
            }
            for new in texts(spelled) {
                let mut value = json!({});
                put_into_value(&mut value, |_| {
                    Some(vec![Edit::set(String::new(), "x", new)])
                });
                assert_eq!(value != json!({}), is_put, "{spelled}");
            }
        }
    }
}
