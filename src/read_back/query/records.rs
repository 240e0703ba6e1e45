//! The text of a result, read as values.

use serde::de::IgnoredAny;

use super::bounds::step;
use super::value::{Text, Value};
use crate::table::{self, is_number};

/// Reads a whole text: JSON or a table with a header, also after lines that say something about it; JSON
/// Lines; or else its lines.
pub(super) fn read(text: &str) -> Value {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json = json(text).or_else(|| json_after_preface(text));
    let records = json.or_else(|| table(text));
    records.unwrap_or_else(|| text.lines().map(Value::text).collect())
}

/// One JSON value, or several as an array.
fn json(text: &str) -> Option<Value> {
    Value::from_json(text).ok().or_else(|| json_lines(text))
}

/// Several JSON values, one after another.
fn json_lines(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut from = 0;
    let next = || {
        let is_json = values.next()?.is_ok();
        let value = &text[from..values.byte_offset()];
        from = values.byte_offset();
        Some(is_json.then(|| Value::from_json(value).ok()).flatten())
    };
    std::iter::from_fn(next).collect()
}

/// JSON from the first line on that begins as JSON does.
fn json_after_preface(text: &str) -> Option<Value> {
    let is_json = |line: &str| line.starts_with(['{', '[']);
    let mut lines = text.match_indices('\n').map(|(feed, _)| &text[feed + 1..]);
    json(lines.find(|rest| is_json(rest))?)
}

fn table(text: &str) -> Option<Value> {
    let mut names: Vec<Text> = Vec::new();
    let table = table::read(text, |columns, (_, cells)| {
        step();
        if !names.iter().map(Text::as_str).eq(columns) {
            names = columns.iter().map(|name| Text::new(&**name)).collect();
        }
        let cells = cells.iter().map(|text| cell(text));
        Some(names.iter().cloned().zip(cells).collect::<Value>())
    })?;
    Some(table.rows.into_iter().collect())
}

/// A cell that is a number as JSON writes it becomes one, everything else stays text.
fn cell(text: &str) -> Value {
    if is_number(text) {
        Value::number_of(text)
    } else {
        Value::text(text)
    }
}
