//! Declared state is JSON: the same reducers, behind checks of types.

use serde_json::Value;

use crate::list::ListEdit;
use crate::reducer::{Cause, Change, Side};

/// What a value is, with its article, for errors. Never what it holds.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number that is no integer",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// A list's reducer at work on JSON: both sides must be lists.
pub(crate) fn on_lists(
    existing: &Value,
    update: Value,
    plan: impl FnOnce(&[Value], Vec<Value>) -> Result<ListEdit<Value>, Cause>,
) -> Result<Change<Value>, Cause> {
    let existing = list(existing)?;
    match update {
        Value::Array(update) => Ok(as_change(plan(existing, update)?)),
        other => Err(wrong_type(Side::Update, &other, "a list")),
    }
}

pub(crate) fn list(existing: &Value) -> Result<&[Value], Cause> {
    match existing {
        Value::Array(items) => Ok(items),
        other => Err(wrong_type(Side::Existing, other, "a list")),
    }
}

pub(crate) fn wrong_type(side: Side, found: &Value, wanted: &'static str) -> Cause {
    Cause::WrongType {
        side,
        found: kind(found),
        wanted,
    }
}

pub(crate) fn as_change(edit: ListEdit<Value>) -> Change<Value> {
    if edit.is_none() {
        return Change::keep();
    }
    Change::edit(move |value| {
        if let Value::Array(items) = value {
            edit.apply(items);
        }
    })
}
