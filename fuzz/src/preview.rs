//! Previews: within their budget, and true to the text.

use offcut::preview::Preview;
use serde_json::{Map, Value};

/// Takes one byte for the strategy, two for the budget, and the text.
pub(crate) fn preview(data: &[u8]) {
    let [strategy, low, high, text @ ..] = data else {
        return;
    };
    let budget = usize::from(u16::from_le_bytes([*low, *high])) % 2_000;
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let strategy = [
        Preview::HeadTail,
        Preview::Lines,
        Preview::Index,
        Preview::Mixed,
    ][usize::from(strategy % 4)];
    let shown = strategy.show(text, budget);
    assert_eq!(shown, strategy.show(text, budget));
    assert!(shown.len() <= budget, "{} bytes for {budget}", shown.len());
    // Redrawn lines, and places after what is hidden, are for the library's own properties.
    let (plain, is_redrawn) = (
        text.replace('\0', ""),
        text.contains(['\0', '\u{1b}', '\u{8}', '\r']),
    );
    assert!(
        text.len() > budget || is_redrawn || shown == plain,
        "it fits, and is not shown whole"
    );
    let is_true = |text: &str| {
        shown.is_empty()
            || shown == text
            || is_excerpt(&shown, text)
            || is_table(&shown, text)
            || is_table_of_fields(&shown, text)
            || is_table_of_columns(&shown, text)
            || is_outline(&shown, text)
            || is_log(&shown, text)
            || are_matches(&shown, text)
    };
    let is_true = is_redrawn || is_true(text) || is_true(&plain);
    assert!(is_true, "{shown:?} is not all from {text:?}");
}

/// The place of the first line that begins as JSON does: words before it may have such signs, too.
fn beginning_of_json(text: &str) -> Option<usize> {
    let begins = |line: &&str| line.starts_with(['{', '[']);
    let first = text.split('\n').find(begins)?;
    Some(first.as_ptr() as usize - text.as_ptr() as usize)
}

/// Returns true for a table of all records of `text`, or one whose numbers and first cells are right.
fn is_table(shown: &str, text: &str) -> bool {
    let Some(from) = beginning_of_json(text) else {
        return false;
    };
    let lines = text[from..].lines().map(|line| {
        (!line.trim().is_empty())
            .then(|| serde_json::from_str(line))
            .transpose()
    });
    let (is_list, records) = match serde_json::from_str::<Value>(&text[from..]) {
        Ok(json) => (true, list_in(&json).into_iter().map(Some).collect()),
        // Numbers out of range and strings that are not Unicode are for the library's own properties.
        Err(error) if error.to_string().contains("number out of range") => return true,
        Err(_) => {
            let before = text[..from].lines().map(|_| None);
            let Ok(lines) = lines.collect::<Result<Vec<Option<Value>>, _>>() else {
                return false;
            };
            (false, before.chain(lines).collect::<Vec<_>>())
        }
    };
    let all = records.iter().flatten().count();
    let Some((_, says)) = shown.split_once(&format!("[{all} records")) else {
        return false;
    };
    let mut rest = says.lines().skip(1);
    if says.starts_with(" as a table, whole]") {
        let names = rest.next().and_then(cells).unwrap_or_default();
        let record = |row: &str| {
            let fields = names.iter().zip(cells(row)?);
            let fields = fields
                .filter_map(|(name, value)| Some((name.as_ref()?.as_str()?.to_owned(), value?)));
            Some(Value::Object(fields.collect::<Map<_, _>>()))
        };
        let read: Option<Vec<Value>> = rest.map(record).collect();
        let records: Vec<Value> = records.into_iter().flatten().collect();
        return read == Some(records);
    }
    let is_header = |line: &&str| {
        line.split_once('|')
            .is_some_and(|(place, _)| place == "line" || place.ends_with("[]"))
    };
    let Some(names) = rest.find(is_header).and_then(cells) else {
        return shown.ends_with("[… more …]");
    };
    let Some(name) = names[1].as_ref().and_then(Value::as_str) else {
        return false;
    };
    rest.take_while(|line| *line != "[… more …]").all(|line| {
        let Some((number, cell)) = line.split_once('|') else {
            return false;
        };
        let place: Option<usize> = number.parse().ok();
        let record = place.and_then(|place| {
            records
                .get(place.checked_sub(usize::from(!is_list))?)?
                .as_ref()
        });
        let cell = cell
            .split(['|', '…'])
            .next()
            .unwrap_or_default()
            .trim_matches('"');
        record.is_some_and(|record| {
            record
                .get(name)
                .map(Value::to_string)
                .unwrap_or_default()
                .contains(cell)
        })
    })
}

/// Returns true for a table of the objects in an object of `text`: each row has a key and its object, or cells of it.
fn is_table_of_fields(shown: &str, text: &str) -> bool {
    let document =
        beginning_of_json(text).and_then(|from| serde_json::from_str(&text[from..]).ok());
    let (Some(document), Some((head, rows))) = (document, shown.split_once("[key]|")) else {
        return false;
    };
    let objects = values_in(&document).into_iter();
    let objects = objects.flat_map(|value| value.as_object().cloned().unwrap_or_default());
    let objects: Vec<(String, Value)> = objects.collect();
    let (header, rows) = rows.split_once('\n').unwrap_or_default();
    let mut rows = rows.lines().filter(|row| *row != "[… more …]");
    if head.contains(" records as a table, whole]") {
        let names = cells(header).unwrap_or_default();
        return rows.all(|row| {
            let cells = cells(row).unwrap_or_default();
            let [Some(key), values @ ..] = &cells[..] else {
                return false;
            };
            let fields = names.iter().zip(values);
            let fields = fields.filter_map(|(name, value)| {
                Some((name.as_ref()?.as_str()?.to_owned(), value.clone()?))
            });
            let object = Value::Object(fields.collect());
            objects
                .iter()
                .any(|(name, known)| Some(&**name) == key.as_str() && *known == object)
        });
    }
    let is_one = |row: &str| {
        objects.iter().any(|(key, value)| {
            let quoted = Value::from(&**key).to_string();
            let cells = row
                .strip_prefix(&**key)
                .or_else(|| row.strip_prefix(&quoted));
            let value = letters(&value.to_string());
            cells
                .and_then(|cells| cells.strip_prefix('|'))
                .is_some_and(|cells| {
                    pieces(cells)
                        .iter()
                        .all(|cell| value.contains(&letters(cell)))
                })
        })
    };
    head.contains(" records") && rows.all(is_one)
}

/// Returns true for a table whose text is not JSON: its cells are in `text`, from its line on if that is shown.
fn is_table_of_columns(shown: &str, text: &str) -> bool {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let are_there = |row: &str, lines: &[&str]| {
        let text = letters(&lines.concat());
        pieces(row)
            .iter()
            .all(|piece| text.contains(&letters(piece)))
    };
    shown.match_indices(" records").any(|(at, sign)| {
        let (before, says) = (&shown[..at], &shown[at + sign.len()..]);
        let all: Option<usize> = before.rsplit('[').next().and_then(|all| all.parse().ok());
        let mut rows = says.lines().skip(1);
        if says.starts_with(" as a table, whole]") {
            return rows.clone().skip(1).count() == all.unwrap_or_default()
                && rows.all(|row| are_there(row, &lines));
        }
        rows.find(|row| row.starts_with("line|"));
        all.is_some()
            && rows.take_while(|row| *row != "[… more …]").all(|row| {
                let (number, cells) = row.split_once('|').unwrap_or_default();
                let from = number.parse::<usize>().ok();
                let lines = from.and_then(|from| lines.get(from.checked_sub(1)?..));
                lines.is_some_and(|lines| are_there(cells, lines))
            })
    })
}

/// The cells of a row, or the beginning of one that is cut.
fn pieces(mut row: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    loop {
        let mut quoted = serde_json::Deserializer::from_str(row).into_iter::<String>();
        // A quoted cell that is cut has no quote at its end: the next one begins another cell.
        let whole = quoted.next().and_then(Result::ok);
        let rest = if let Some(piece) = whole.filter(|piece| !piece.contains("…|")) {
            pieces.push(piece);
            &row[quoted.byte_offset()..]
        } else {
            let end = row.find(['|', '…', '\\']).unwrap_or(row.len());
            pieces.push(row[..end].to_owned());
            &row[end..]
        };
        let Some((_, next)) = rest.split_once('|') else {
            return pieces;
        };
        row = next;
    }
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_whitespace()).collect()
}

/// A text without blanks, quotes, escapes and other signs.
fn letters(text: &str) -> String {
    text.chars().filter(|sign| sign.is_alphanumeric()).collect()
}

/// Returns true for an outline of the JSON document in `text`: each line has the size of a value, or shows one.
fn is_outline(shown: &str, text: &str) -> bool {
    let document = beginning_of_json(text).map(|from| &text[from..]);
    let document = document.and_then(|json| serde_json::from_str(json).ok());
    let (Some(shown), Some(document)) = (shown.strip_suffix("[… more …]"), document) else {
        return false;
    };
    let (values, dense) = (values_in(&document), without_blanks(text));
    let is_size = |value: &str| {
        value.starts_with('{') && value.ends_with(" B}")
            || value.starts_with('[') && value.ends_with(" B]")
            || value.starts_with("… ")
    };
    let is_there = |value: &str| {
        let read = serde_json::from_str::<Value>(value).ok();
        let shown = value.split('…').next().unwrap_or_default().trim_end();
        let shown = shown.trim_matches('"');
        // A key may be there twice, and its first value not among these.
        text.contains(shown)
            || dense.contains(&without_blanks(shown))
            || values.iter().any(|known| {
                read.as_ref() == Some(known)
                    || known.to_string().contains(shown)
                    || known.as_str().is_some_and(|known| known.contains(shown))
            })
    };
    shown.lines().all(|line| {
        let line = line.trim_start();
        let mut values = line
            .match_indices(": ")
            .map(|(at, sign)| &line[at + sign.len()..]);
        text.contains(line)
            || is_size(line)
            || values.any(|value| is_size(value) || is_there(value))
    })
}

/// All values in `json`, itself among them.
fn values_in(json: &Value) -> Vec<Value> {
    let inner: Vec<Value> = match json {
        Value::Array(items) => items.iter().flat_map(values_in).collect(),
        Value::Object(fields) => fields.values().flat_map(values_in).collect(),
        _ => Vec::new(),
    };
    inner.into_iter().chain([json.clone()]).collect()
}

/// Returns true for a log by its kinds of lines: each is in `text`, under the first of its numbers.
fn is_log(shown: &str, text: &str) -> bool {
    let Some((head, kinds)) = shown.split_once('\n') else {
        return false;
    };
    let kinds = kinds.strip_suffix("[… more …]").unwrap_or(kinds);
    head.starts_with('[')
        && head.ends_with(" kinds]")
        && kinds.lines().all(|line| {
            let place = line.split_once('|').unwrap_or((line, ""));
            let first = place.0.split(['…', ' ']).next().unwrap_or_default();
            are_lines(&format!("{first}|{}", place.1), text)
        })
}

/// Returns true for the matches of a search by file: each begins a line of `text`, after the path above it.
fn are_matches(shown: &str, text: &str) -> bool {
    let (head, rows) = shown.split_once('\n').unwrap_or_default();
    let mut paths: Vec<&str> = Vec::new();
    head.starts_with('[')
        && head.contains(" matches in ")
        && rows.lines().all(|row| {
            let begin = row.strip_suffix('…').unwrap_or(row);
            let is_there = |begin: &str| text.lines().any(|line| line.starts_with(begin));
            // The line of a match may end as a path with its number of matches does.
            let path = row.rsplit_once(" (").map(|(path, _)| path);
            let is_match = [":", "-"].iter().any(|sign| {
                paths
                    .iter()
                    .any(|path| is_there(&format!("{path}{sign}{begin}")))
            });
            let is_path = path.is_some_and(is_there);
            paths.extend(path);
            is_match || is_path || is_there(begin) || are_lines(row, text) || row == "[… more …]"
        })
}

/// The longest list in objects in `json`.
fn list_in(json: &Value) -> Vec<Value> {
    match json {
        Value::Array(list) => list.clone(),
        Value::Object(fields) => fields
            .values()
            .map(list_in)
            .max_by_key(Vec::len)
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The cells of a row; an empty one is none.
fn cells(mut row: &str) -> Option<Vec<Option<Value>>> {
    let mut cells = Vec::new();
    loop {
        let rest = if row.starts_with(['"', '{', '[']) {
            let mut values = serde_json::Deserializer::from_str(row).into_iter::<Value>();
            cells.push(Some(values.next()?.ok()?));
            &row[values.byte_offset()..]
        } else {
            let (cell, rest) = row.split_at(row.find('|').unwrap_or(row.len()));
            let value = || serde_json::from_str(cell).unwrap_or_else(|_| cell.into());
            cells.push((!cell.is_empty()).then(value));
            rest
        };
        if rest.is_empty() {
            return Some(cells);
        }
        row = rest.strip_prefix('|')?;
    }
}

/// Returns true if `shown` are lines of `text` after their numbers, whole or cut, or pieces of them after their places.
fn are_lines(shown: &str, text: &str) -> bool {
    let lines: Vec<&str> = text.split('\n').collect();
    shown.lines().all(|shown| {
        let Some((number, shown)) = shown.split_once('|') else {
            return false;
        };
        let (number, byte) = match number.split_once('+') {
            Some((number, byte)) => (number, byte.parse::<usize>().ok()),
            None => (number, None),
        };
        let line = number
            .parse::<usize>()
            .ok()
            .and_then(|number| lines.get(number.checked_sub(1)?));
        line.is_some_and(|line| {
            if let Some(there) = byte.and_then(|byte| line.get(byte..)) {
                let piece = shown.strip_prefix('…').unwrap_or("…");
                return there.starts_with(piece.strip_suffix('…').unwrap_or(piece));
            }
            let mut cuts = shown.match_indices('…');
            *line == shown
                || cuts.any(|(at, cut)| {
                    line.starts_with(&shown[..at]) && line.ends_with(&shown[at + cut.len()..])
                })
        })
    })
}

/// Returns true if each line of `shown` is in `text`, under its number if it has one, and each name
/// too.
fn is_excerpt(shown: &str, text: &str) -> bool {
    let Some((shown, rest)) = shown.rsplit_once('\n') else {
        return false;
    };
    let lines: Vec<&str> = text.split('\n').collect();
    let is_there = |line: &str| {
        is_numbered(line, &lines) || uncut(line).iter().any(|line| text.contains(line))
    };
    let are_names = |line: &str| {
        line.strip_prefix("names:")
            .is_some_and(|names| are_names(names, &lines))
    };
    rest.starts_with("[… ")
        && rest.ends_with(" B …]")
        && shown
            .split('\n')
            .all(|line| is_there(line) || are_names(line))
}

fn is_numbered(shown: &str, lines: &[&str]) -> bool {
    let Some((place, shown)) = shown.split_once('|') else {
        return false;
    };
    let (number, byte) = place.split_once('+').unwrap_or((place, "0"));
    let (Ok(number), Ok(byte)) = (number.parse::<usize>(), byte.parse::<usize>()) else {
        return false;
    };
    let line = number
        .checked_sub(1)
        .and_then(|at| lines.get(at)?.get(byte..));
    line.is_some_and(|line| uncut(shown).iter().any(|shown| line.starts_with(shown)))
}

/// Returns true if each name is in the line whose number precedes it.
fn are_names(names: &str, lines: &[&str]) -> bool {
    let mut line = None;
    names.split_whitespace().all(|word| {
        let number = word
            .parse::<usize>()
            .ok()
            .and_then(|number| lines.get(number.checked_sub(1)?));
        let is_name = line.is_some_and(|line: &&str| line.contains(word));
        line = number.or(line);
        is_name || number.is_some()
    })
}

/// Returns a line with and without the marks for a cut beginning or end, since such marks may be
/// part of the line.
fn uncut(line: &str) -> [&str; 4] {
    let begun = line.strip_prefix('…').unwrap_or(line);
    [
        line,
        begun,
        line.strip_suffix('…').unwrap_or(line),
        begun.strip_suffix('…').unwrap_or(begun),
    ]
}
