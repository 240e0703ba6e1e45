//! Texts that are shown in their shape: records, in JSON or as a table, JSON documents, logs, and matches of a search.

use std::sync::LazyLock;

use regex::Regex;

use crate::json::{JsonText, Node, View};
use crate::preview::outcomes::without_header;
use crate::preview::pattern::pattern;
use crate::preview::records::{AroundRecords, KEYED, NONE, Records, Row};
use crate::preview::rows::{cell_of_text, compact};
use crate::preview::table;
use crate::preview::units::Unit;
use crate::preview::{log, matches, outline};

/// Maximum number of values and keys of a text that is read.
const MAX_VALUES: usize = 1 << 20;
/// Objects in objects that are searched for a list.
const MAX_DEPTH: usize = 3;
/// The header of the numbers of lines.
const LINES: &str = "line";
/// Number of bytes at the beginning of a text that tell whether it may be a log or the output of a search.
const BEGINNING: usize = 2 * 1024;

/// A name that a path needs no quotes for.
static WORD: LazyLock<Regex> = LazyLock::new(|| pattern("^[A-Za-z_][A-Za-z0-9_]*$"));

/// Returns `text` in its shape, in at most `budget` bytes, if it has one of which that shows anything.
pub(crate) fn show(text: &str, budget: usize) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = &text[..text.floor_char_boundary(BEGINNING)];
    show_json(text, budget)
        .or_else(|| show_table(text, budget))
        .or_else(|| log::show(text, first, budget))
        .or_else(|| matches::show(text, first, budget))
}

fn show_json(text: &str, budget: usize) -> Option<String> {
    // Lines before it say something about the records.
    let from = table::first_lines(text).find(|at| text[*at..].starts_with(['{', '[']))?;
    let json = &text[from..];
    let before = said(&text[..from]);
    if let Ok(Some(document)) = JsonText::parse_within(json, MAX_VALUES) {
        let root = Node::root(&document);
        return list_of_records(root, json, &before, budget)
            .or_else(|| outline::show(root, &before, budget));
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
    let objects = documents
        .iter()
        .map(|(document, line)| (Node::root(document), line.to_string()));
    let around = AroundRecords {
        before,
        after: String::new(),
        numbers: LINES.to_owned(),
        absent: NONE,
    };
    Records::of_objects(objects, json.len(), around)?.show(budget)
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
        Records::of_objects(items.chain(keyed), json.len(), around)
    });
    records?.show(budget)
}

fn show_table(text: &str, budget: usize) -> Option<String> {
    let mut left = MAX_VALUES;
    let table = table::read(text, |_, (line, cells)| {
        left = left.checked_sub(1 + cells.len())?;
        let cells = cells.into_iter().enumerate();
        let cells = cells.filter(|(_, cell)| !cell.is_empty());
        let cells = cells.map(|(column, cell)| {
            let quoted = (!table::is_number(&cell)).then(|| cell_of_text(&cell).into_owned());
            (column, quoted.unwrap_or(cell).into())
        });
        Some(Row {
            place: line.to_string(),
            cells: cells.collect(),
        })
    })?;
    let after: Vec<&str> = table.after.split_whitespace().collect();
    let around = AroundRecords {
        before: said(table.before),
        after: after.join(" "),
        numbers: LINES.to_owned(),
        absent: r#""""#,
    };
    Records::of_rows(table.names, table.rows, around)?.show(budget)
}

/// The lines before a shape, without a header of the harness but for the exit code.
fn said(before: &str) -> String {
    let lines = before.lines().zip(1..);
    let units: Vec<Unit<'_>> = lines.map(|(text, line)| Unit::line(text, line)).collect();
    let told = without_header(&units);
    told.iter().map(|unit| format!("{}\n", unit.text)).collect()
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
        let longest = longest.filter(|(name, _)| WORD.is_match(name));
        inner = longest.map(|(name, value)| {
            path += &format!(".{name}");
            value
        });
    }
    lists
}
