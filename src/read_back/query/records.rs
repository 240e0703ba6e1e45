//! The text of a result, read as values.

use std::io::{BufRead, Read};

use super::bounds::step;
use super::value::Value;
use crate::table::{self, is_number};

/// Reads a whole text: JSON or a table with a header, also after lines that say something about it; JSON
/// Lines; or else its lines.
pub(super) fn read_whole(text: &str) -> Value {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json = json(text).or_else(|| json_after_preface(text));
    let records = json.or_else(|| table(text));
    records.unwrap_or_else(|| text.lines().map(Value::text).collect())
}

/// One JSON value, or several as an array.
fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| json_lines(text))
}

/// Several JSON values, one after another.
fn json_lines(text: &str) -> Option<Value> {
    let begins = text.trim_start();
    if !begins.starts_with(['{', '[']) {
        return None;
    }
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect();
    Some(values.ok()?.into_iter().collect())
}

/// JSON from the first line on that begins as JSON does.
fn json_after_preface(text: &str) -> Option<Value> {
    let is_json = |line: &str| line.starts_with(['{', '[']);
    let mut lines = text.match_indices('\n').map(|(feed, _)| &text[feed + 1..]);
    json(lines.find(|rest| is_json(rest))?)
}

fn table(text: &str) -> Option<Value> {
    let (mut known, mut names) = (Vec::new(), Vec::new());
    let table = table::read(text, |columns, (_, cells)| {
        step();
        if known != columns {
            columns.clone_into(&mut known);
            names = named(columns.iter());
        }
        Some(row(&names, cells.iter()))
    })?;
    Some(table.rows.into_iter().collect())
}

fn named(names: impl Iterator<Item = impl AsRef<str>>) -> Vec<Value> {
    names.map(|name| Value::text(name.as_ref())).collect()
}

fn row(names: &[Value], cells: impl Iterator<Item = impl AsRef<str>>) -> Value {
    let cells = cells.map(|text| cell(text.as_ref()));
    jaq_core::ValT::from_map(names.iter().cloned().zip(cells)).unwrap_or(Value::Null)
}

/// A cell that is a number as JSON writes it becomes one, everything else stays text.
fn cell(text: &str) -> Value {
    let number = is_number(text).then(|| serde_json::from_str(text).ok());
    number.flatten().unwrap_or_else(|| Value::text(text))
}

/// The rows of separated values, one after another.
fn rows_of(text: impl Read, separator: u8) -> impl Iterator<Item = Result<Value, String>> {
    let mut names = Vec::new();
    let rows = table::separated(text, separator).into_byte_records();
    let mut rows = rows.inspect(|_| step());
    if let Some(Ok(header)) = rows.next() {
        names = named(header.iter().map(String::from_utf8_lossy));
    }
    rows.zip(2..).map(move |(cells, number)| {
        let (cells, wanted) = (cells.map_err(|error| error.to_string())?, names.len());
        if cells.len() == wanted {
            return Ok(row(&names, cells.iter().map(String::from_utf8_lossy)));
        }
        let has = cells.len();
        Err(format!(
            "record {number} has {has} cells instead of {wanted}"
        ))
    })
}

/// Records, one after another.
pub(super) type Records<'r> = Box<dyn Iterator<Item = Result<Value, String>> + 'r>;

/// Reads a text that is too long to hold, value by value. `None` if it is one JSON value.
pub(super) fn read_in_order<'r>(
    mut text: impl BufRead + 'r,
) -> std::io::Result<Option<Records<'r>>> {
    let beginning = String::from_utf8_lossy(text.fill_buf()?).into_owned();
    if beginning.starts_with(['{', '[']) {
        let line = beginning.split('\n').next().unwrap_or_default();
        if serde_json::from_str::<Value>(line).is_err() {
            return Ok(None);
        }
        let values = serde_json::Deserializer::from_reader(text).into_iter();
        let values = values.map(|value| value.map_err(|error| error.to_string()));
        return Ok(Some(Box::new(values)));
    }
    let whole_lines = beginning.rfind('\n').map_or("", |feed| &beginning[..=feed]);
    if let Some(separator) = table::separator(whole_lines) {
        return Ok(Some(Box::new(rows_of(text, separator))));
    }
    let lines = text.split(b'\n').map(|line| {
        step();
        let line = line.map_err(|error| error.to_string())?;
        let line = String::from_utf8_lossy(&line);
        Ok(Value::text(line.trim_end_matches('\r')))
    });
    Ok(Some(Box::new(lines)))
}
