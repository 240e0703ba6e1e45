//! Types of JSON values, for checks and their errors.

use serde_json::Value;

use crate::reducer::{Cause, Side};

/// Describes a value's type with its article, for errors. Never its content.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction or exponent",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Takes the items of an update. One that `take` gives back has the wrong type.
pub(crate) fn each<T>(
    update: Vec<Value>,
    wanted: &'static str,
    take: impl Fn(Value) -> Result<T, Value>,
) -> Result<Vec<T>, Cause> {
    let items = update.into_iter().enumerate();
    let items = items.map(|(index, item)| {
        take(item).map_err(|other| Cause::WrongItem {
            side: Side::Update,
            index,
            found: kind(&other),
            wanted,
        })
    });
    items.collect()
}

pub(crate) fn wrong_type(side: Side, found: &Value, wanted: &'static str) -> Cause {
    Cause::WrongType {
        side,
        found: kind(found),
        wanted,
    }
}
