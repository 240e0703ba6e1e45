//! The text of a result, read as values.

use std::io::{BufRead, Read};

use serde::de::IgnoredAny;

use super::bounds::step;
use super::value::{Text, Value};
use crate::preview::table::{self, is_number};

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
        Some(row(&names, cells.iter()))
    })?;
    Some(table.rows.into_iter().collect())
}

fn row(names: &[Text], cells: impl Iterator<Item = impl AsRef<str>>) -> Value {
    let cells = cells.map(|text| cell(text.as_ref()));
    names.iter().cloned().zip(cells).collect()
}

/// A cell that is a number as JSON writes it becomes one, everything else stays text.
fn cell(text: &str) -> Value {
    if is_number(text) {
        Value::number_of(text)
    } else {
        Value::text(text)
    }
}

/// The rows of separated values, one after another.
fn rows_of(text: impl Read, separator: u8) -> impl Iterator<Item = Result<Value, String>> {
    let mut names = Vec::new();
    let rows = table::separated(text, separator).into_byte_records();
    let mut rows = rows.inspect(|_| step());
    if let Some(Ok(header)) = rows.next() {
        let header = header.iter().map(String::from_utf8_lossy);
        names = header.map(|name| Text::new(&*name)).collect();
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

/// Reads a text that is too long to hold, record by record: JSON Lines, a table, or other lines.
/// `None` if it is one JSON value.
pub(super) fn read_in_order<'r>(
    mut text: impl BufRead + 'r,
) -> std::io::Result<Option<Records<'r>>> {
    let beginning = String::from_utf8_lossy(text.fill_buf()?).into_owned();
    let first = beginning.split('\n').next().unwrap_or_default();
    let is_json = match serde_json::from_str(first) {
        Ok(IgnoredAny) => first.starts_with(['{', '[']),
        Err(error) if error.is_eof() && first.starts_with(['{', '[']) => return Ok(None),
        // Lines of a log, which may begin with `[` too.
        Err(_) => false,
    };
    let whole_lines = beginning.rfind('\n').map_or("", |feed| &beginning[..=feed]);
    if !is_json && let Some(separator) = table::separator(whole_lines) {
        return Ok(Some(Box::new(rows_of(text, separator))));
    }
    let lines = text
        .split(b'\n')
        .zip(1..)
        .filter_map(move |(line, number)| {
            step();
            let line = match line {
                Ok(line) => line,
                Err(error) => return Some(Err(error.to_string())),
            };
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches('\r');
            if !is_json {
                return Some(Ok(Value::text(line)));
            }
            let value = Value::from_json(line);
            let value = value.map_err(|error| format!("line {number}: {error}"));
            (!line.trim().is_empty()).then_some(value)
        });
    Ok(Some(Box::new(lines)))
}
