//! Texts that are shown in their shape: records, in JSON or as a table, JSON documents, logs, and matches of a search.

use crate::json::{JsonText, Node, View};
use crate::preview::outcomes::without_header;
use crate::preview::records::{AroundRecords, KEYED, NONE, Records, cell_of_text, compact};
use crate::preview::units::Unit;
use crate::preview::{log, matches, outline};
use crate::table;

/// Maximum length in bytes of a text that is read.
pub(crate) const MAX_TEXT: usize = 4 * 1024 * 1024;
/// Maximum length in bytes of a table as JSON, which has the names of the columns in each row.
const MAX_JSON: usize = 4 * MAX_TEXT;
/// Maximum number of values and keys of a text that is read.
const MAX_VALUES: usize = 1 << 20;
/// Objects in objects that are searched for a list.
const MAX_DEPTH: usize = 3;

/// The header of the numbers of lines.
const LINES: &str = "line";
/// Number of bytes at the beginning of a text that tell whether it may have a shape.
pub(crate) const BEGINNING: usize = 2 * 1024;

/// Returns `text` in its shape, in at most `budget` bytes, if it has one of which that shows anything.
pub(crate) fn show(text: &str, budget: usize) -> Option<String> {
    if text.len() > MAX_TEXT || !may_have_shape(text) {
        return None;
    }
    let text = unmarked(text);
    show_json(text, budget)
        .or_else(|| show_table(text, budget))
        .or_else(|| log::show(text, first(text), budget))
        .or_else(|| matches::show(text, first(text), budget))
}

fn show_json(text: &str, budget: usize) -> Option<String> {
    let from = beginning(text)?;
    let json = &text[from..];
    if let Ok(Some(document)) = JsonText::parse_within(json, MAX_VALUES) {
        let (root, before) = (Node::root(&document), &said(&text[..from]));
        return list_of_records(root, json, before, budget)
            .or_else(|| outline::show(root, before, budget));
    }
    let lines = text.lines().zip(1..).skip(text[..from].lines().count());
    let lines = lines.filter(|(line, _)| !line.trim().is_empty());
    let mut most = MAX_VALUES;
    let mut documents = Vec::new();
    for (text, line) in lines {
        let document = JsonText::parse_within(text, most).ok()??;
        most = most.checked_sub(Node::root(&document).values())?;
        documents.push((document, line));
    }
    let rows = documents
        .iter()
        .map(|(document, line)| (Node::root(document), line.to_string()));
    let around = AroundRecords {
        before: said(&text[..from]),
        after: String::new(),
        numbers: LINES.to_owned(),
        absent: NONE,
    };
    Records::read(Vec::new(), rows, json.len(), around)?.show(budget)
}

fn list_of_records(root: Node<'_>, json: &str, before: &str, budget: usize) -> Option<String> {
    let records = lists_in(root).into_iter().find_map(|(path, list)| {
        let items = list.items().enumerate();
        let items = items.map(|(at, item)| (item, at.to_string()));
        let keyed = list.fields();
        let keyed = keyed.map(|(key, value)| (value, cell_of_text(key).into_owned()));
        let (path, range) = (if path.is_empty() { "." } else { &path }, list.range());
        let places = if list.is_object() { KEYED } else { "[]" };
        let around = AroundRecords {
            before: format!("{before}{}", compact(&json[..range.start])),
            after: compact(&json[range.end..]).into_owned(),
            numbers: format!("{path}{places}"),
            absent: NONE,
        };
        Records::read(Vec::new(), items.chain(keyed), json.len(), around)
    });
    records?.show(budget)
}

fn show_table(text: &str, budget: usize) -> Option<String> {
    let mut room = MAX_JSON;
    let table = table::read(text, |names, (line, cells)| {
        let object = object(names, &cells);
        room = room.saturating_sub(object.len() + size_of::<String>());
        let object = if room > 0 { object } else { String::new() };
        (line, object)
    })?;
    if room == 0 {
        return None;
    }
    let objects = table.rows.iter().map(|(_, object)| object.as_str());
    let objects: Vec<&str> = objects.collect();
    let json = format!("[{}]", objects.join(","));
    let document = JsonText::parse_within(json, MAX_VALUES).ok()??;
    let names = table.names.iter().map(String::as_str).collect();
    let lines = table.rows.iter().map(|(line, _)| line.to_string());
    let after: Vec<&str> = table.after.split_whitespace().collect();
    let around = AroundRecords {
        before: said(table.before),
        after: after.join(" "),
        numbers: LINES.to_owned(),
        absent: r#""""#,
    };
    Records::read(names, Node::root(&document).items().zip(lines), 0, around)?.show(budget)
}

/// A row as an object of the cells that are not empty.
fn object(names: &[String], cells: &[String]) -> String {
    let text = |text: &String| serde_json::Value::from(text.as_str()).to_string();
    let fields = names.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
    let fields = fields.map(|(name, cell)| {
        let value = Some(cell).filter(|cell| table::is_number(cell)).cloned();
        format!("{}:{}", text(name), value.unwrap_or_else(|| text(cell)))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Returns the place of the first line that begins as JSON does. Lines before it say something about the records.
fn beginning(text: &str) -> Option<usize> {
    table::first_lines(text).find(|at| text[*at..].starts_with(['{', '[']))
}

/// A text without its byte-order mark.
fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn first(text: &str) -> &str {
    &text[..text.floor_char_boundary(BEGINNING)]
}

/// The lines before a shape, without a header of the harness but for the exit code.
fn said(before: &str) -> String {
    let lines = before.lines().zip(1..);
    let units: Vec<Unit<'_>> = lines.map(|(text, line)| Unit::line(text, line)).collect();
    let told = without_header(&units);
    told.iter().map(|unit| format!("{}\n", unit.text)).collect()
}

/// Returns true unless `text`, and whatever is appended to it, certainly has no shape.
pub(crate) fn may_have_shape(text: &str) -> bool {
    let text = unmarked(text);
    text.len() <= BEGINNING
        || beginning(text).is_some()
        || table::may_begin(first(text))
        || log::may_begin(first(text))
        || matches::may_begin(first(text))
}

/// The objects of objects, and the list, that may be most of `json`, each with its path in jq's language.
fn lists_in(json: Node<'_>) -> Vec<(String, Node<'_>)> {
    let (mut path, mut inner, mut lists) = (String::new(), Some(json), Vec::new());
    for _ in 0..=MAX_DEPTH {
        let Some(json) = inner.take() else {
            break;
        };
        let fields = || json.fields().map(|(_, value)| value);
        if json.is_array() || fields().next().is_some() && fields().all(View::is_object) {
            lists.push((path.clone(), json));
        }
        let longest = json.fields().max_by_key(|(_, value)| value.range().len());
        let is_letter = |sign: char| sign.is_ascii_alphabetic() || sign == '_';
        let is_of_word = |sign: char| is_letter(sign) || sign.is_ascii_digit();
        let is_word = |name: &str| name.starts_with(is_letter) && name.chars().all(is_of_word);
        let longest = longest.filter(|(name, _)| is_word(name));
        inner = longest.map(|(name, value)| {
            path += &format!(".{name}");
            value
        });
    }
    lists
}
