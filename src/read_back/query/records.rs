//! The text of a result, read as values.

use std::collections::HashSet;
use std::io::{BufRead, Read};

use super::bounds::step;
use super::value::Value;

/// Characters that separate the columns of a table, the likeliest first.
const SEPARATORS: [u8; 4] = [b'\t', b',', b';', b'|'];
/// Fewer lines below names are not taken for a table by their spaces.
const MIN_ALIGNED: usize = 3;

/// Reads a whole text: JSON, also after lines that say something about it; JSON Lines; a table with a
/// header; or else its lines.
pub(super) fn read_whole(text: &str) -> Value {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let separated = || SEPARATORS.into_iter().find_map(|by| table(text, by));
    let records = json(text)
        .or_else(|| json_after_preface(text))
        .or_else(|| markdown_table(text));
    let records = records.or_else(separated).or_else(|| aligned_table(text));
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

fn table(text: &str, separator: u8) -> Option<Value> {
    let header = text.lines().next()?;
    if !header.as_bytes().contains(&separator) {
        return None;
    }
    let rows = rows_of(text.as_bytes(), separator);
    let all: Vec<Value> = rows.collect::<Result<_, _>>().ok()?;
    // Two lines with a comma are not a table yet.
    (all.len() > 1).then(|| all.into_iter().collect())
}

fn rows_of(text: impl Read, separator: u8) -> Rows<impl Read> {
    let reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .trim(csv::Trim::All)
        .from_reader(text);
    Rows {
        reader,
        names: None,
    }
}

/// The rows of a table as objects.
struct Rows<R> {
    reader: csv::Reader<R>,
    names: Option<Vec<Value>>,
}

impl<R: Read> Iterator for Rows<R> {
    type Item = Result<Value, String>;

    fn next(&mut self) -> Option<Self::Item> {
        step();
        if self.names.is_none() {
            let header = match self.reader.byte_headers() {
                Ok(header) => header
                    .iter()
                    .map(String::from_utf8_lossy)
                    .collect::<Vec<_>>(),
                Err(error) => return Some(Err(error.to_string())),
            };
            self.names = named(&header.iter().map(|name| &**name).collect::<Vec<_>>());
        }
        let Some(names) = self.names.as_deref() else {
            return Some(Err("its columns have no names".to_owned()));
        };
        let mut cells = csv::ByteRecord::new();
        match self.reader.read_byte_record(&mut cells) {
            Ok(true) => Some(Ok(row(names, cells.iter().map(String::from_utf8_lossy)))),
            Ok(false) => None,
            Err(error) => Some(Err(error.to_string())),
        }
    }
}

fn row(names: &[Value], cells: impl Iterator<Item = impl AsRef<str>>) -> Value {
    let cells = names
        .iter()
        .cloned()
        .zip(cells.map(|text| cell(text.as_ref())));
    jaq_core::ValT::from_map(cells).unwrap_or(Value::Null)
}

/// A cell that is a number as JSON writes it becomes one, everything else stays text: `007` is no
/// number.
fn cell(text: &str) -> Value {
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let number = is_number.then(|| serde_json::from_str(text).ok()).flatten();
    number.unwrap_or_else(|| Value::text(text))
}

fn markdown_table(text: &str) -> Option<Value> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut rows = lines.map(|line| {
        let cells = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(cells.split('|').map(str::trim).collect::<Vec<_>>())
    });
    let names = named(&rows.next()??)?;
    let is_rule = |cell: &&str| cell.len() > 1 && cell.bytes().all(|byte| b"-:".contains(&byte));
    if !rows.next()??.iter().all(is_rule) {
        return None;
    }
    rows.map(|cells| {
        cells
            .filter(|cells| cells.len() == names.len())
            .map(|cells| row(&names, cells.into_iter()))
    })
    .collect()
}

/// A table whose columns begin at the same place in each line, below names that are at least two spaces
/// apart, as `docker ps` and `kubectl get` print it.
fn aligned_table(text: &str) -> Option<Value> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut lines = lines.map(|line| line.chars().collect::<Vec<char>>());
    let header = lines.next()?;
    let begins =
        |at: &usize| header[*at] != ' ' && (*at == 0 || header[..*at].ends_with(&[' ', ' ']));
    let starts: Vec<usize> = (0..header.len()).filter(begins).collect();
    let cells = |line: &[char]| -> Option<Vec<String>> {
        let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
        let cells = starts.iter().zip(ends).map(|(start, end)| {
            let before = start.checked_sub(1).and_then(|before| line.get(before));
            let cell = line.get(*start..end.min(line.len())).unwrap_or_default();
            before
                .is_none_or(|char| *char == ' ')
                .then(|| cell.iter().collect::<String>().trim().to_owned())
        });
        cells.collect()
    };
    let names = cells(&header)?;
    let names = named(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    let rows = lines.map(|line| Some(row(&names, cells(&line)?.into_iter())));
    let rows: Vec<Value> = rows.collect::<Option<_>>()?;
    (starts.first() == Some(&0) && starts.len() > 1 && rows.len() >= MIN_ALIGNED)
        .then(|| rows.into_iter().collect())
}

/// The names of columns, if each has one of its own.
fn named(names: &[&str]) -> Option<Vec<Value>> {
    let distinct: HashSet<&&str> = names.iter().filter(|name| !name.is_empty()).collect();
    (distinct.len() == names.len()).then(|| names.iter().map(|name| Value::text(name)).collect())
}

/// Records, one after another.
pub(super) type Records<'r> = Box<dyn Iterator<Item = Result<Value, String>> + 'r>;

/// Reads a text that is too long to hold, value by value. `None` if it is one JSON value.
pub(super) fn read_in_order<'r>(
    mut text: impl BufRead + 'r,
) -> std::io::Result<Option<Records<'r>>> {
    let beginning = text.fill_buf()?;
    let line = beginning
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    if line.starts_with(['{', '[']) {
        if serde_json::from_str::<Value>(&line).is_err() {
            return Ok(None);
        }
        let values = serde_json::Deserializer::from_reader(text).into_iter();
        let values = values.map(|value| value.map_err(|error| error.to_string()));
        return Ok(Some(Box::new(values)));
    }
    let beginning = String::from_utf8_lossy(text.fill_buf()?).into_owned();
    let whole_lines = beginning.rfind('\n').map_or("", |feed| &beginning[..=feed]);
    if let Some(separator) = SEPARATORS
        .into_iter()
        .find(|by| table(whole_lines, *by).is_some())
    {
        return Ok(Some(Box::new(rows_of(text, separator))));
    }
    let mut line = Vec::new();
    let lines = std::iter::from_fn(move || {
        step();
        line.clear();
        match text.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => Some(Ok(Value::text(
                String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']),
            ))),
            Err(error) => Some(Err(error.to_string())),
        }
    });
    Ok(Some(Box::new(lines)))
}
