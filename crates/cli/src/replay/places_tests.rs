//! Line numbers that previews quote, checked against the text that their hint leads to, and by reading each
//! place with the real reader.
//!
//! A model that reads back goes where a preview tells it to: a wrong number is a loss like a hint to the
//! wrong place.

use std::io::Write as _;

use offcut::agent::Tool;
use offcut::backend::Memory;
use offcut::format::{Message, Messages, Plain};
use offcut::hint::{Hint, Kind};
use offcut::preview::Preview;
use offcut::{Settings, ToolCall, ToolReduction, Turn};
use regex::Regex;
use serde_json::json;

use super::naive_tests::{arrive, real_transcripts, text_of};
use crate::transcript::Source;
use crate::{settings, stores};

/// Number of places that previews quote, and of those at which the text has something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Places {
    quoted: u64,
    wrong: u64,
}

impl Places {
    fn add(&mut self, other: Self) {
        self.quoted += other.quoted;
        self.wrong += other.wrong;
    }

    fn note(&mut self, is_right: bool) {
        self.quoted += 1;
        self.wrong += u64::from(!is_right);
    }
}

/// The places in a preview of `text`: `12|` and `12+400|` before lines, and numbers before names.
fn places(preview: &str, text: &str) -> Places {
    let lines: Vec<&str> = text.split('\n').collect();
    let shown: Vec<&str> = preview.split('\n').collect();
    let mut places = Places::default();
    // The rows of a table have numbers of lines, or of the items of a list.
    let is_header =
        |row: &&str| row.starts_with("line|") || row.starts_with('.') && row.contains("]|");
    let header = shown.iter().position(is_header).unwrap_or(shown.len());
    let rows = shown.iter().skip(header);
    if shown
        .get(header)
        .is_some_and(|header| header.starts_with("line|"))
    {
        for is_right in rows.filter_map(|row| cells(row, &lines)) {
            places.note(is_right);
        }
    }
    for row in shown.iter().take(header) {
        if let Some(is_right) = numbered(row, &lines) {
            // A line of the text may begin like one of ours.
            if is_right || !text.contains(row.trim_end_matches('…')) {
                places.note(is_right);
            }
        } else if let Some(list) = row.strip_prefix("names: ")
            && !lines.contains(row)
        {
            listed(list, &lines, &mut places);
        }
    }
    places
}

/// Tells whether a row that begins with a place shows what is there. `None` if it does not begin with one.
fn numbered(row: &str, lines: &[&str]) -> Option<bool> {
    let (place, body) = row.split_once('|')?;
    let (number, byte) = place.split_once('+').unwrap_or((place, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(number) || !is_digits(byte) {
        return None;
    }
    let body = if byte == "0" {
        body
    } else {
        body.strip_prefix('…')?
    };
    let body = body.strip_suffix('…').unwrap_or(body);
    let there = || {
        let line = lines.get(number.parse::<usize>().ok()?.checked_sub(1)?)?;
        line.get(byte.parse().ok()?..)
    };
    Some(there().is_some_and(|there| shows(there, body)))
}

/// Tells whether the cells of a table's row stand in its line, but for those that are cut or have escapes. `None` if it is
/// no row.
fn cells(row: &str, lines: &[&str]) -> Option<bool> {
    let (number, cells) = row.split_once('|')?;
    let number = number.parse::<usize>().ok()?;
    let line = number.checked_sub(1).and_then(|at| lines.get(at));
    let is_there =
        |cell: &str| cell.contains(['"', '…']) || line.is_some_and(|line| line.contains(cell));
    Some(cells.split('|').all(is_there))
}

/// Tells whether the text at a place begins with `body`, as it is or as a person sees it.
fn shows(there: &str, body: &str) -> bool {
    // Encoded data is named by its length.
    let seen = ["[base64, ", "[hex, "]
        .into_iter()
        .filter_map(|data| body.find(data))
        .min();
    let seen = &body[..seen.unwrap_or(body.len())];
    there.starts_with(body) || plain(there).starts_with(seen)
}

/// A line without escape sequences and NUL, as it was last drawn.
fn plain(line: &str) -> String {
    let plain = anstream::adapter::strip_str(line)
        .to_string()
        .replace('\0', "");
    let end = plain.trim_end_matches('\r').len();
    let start = plain[..end].rfind('\r').map_or(0, |at| at + 1);
    plain[start..].to_owned()
}

/// Checks names, each after the number of its line.
fn listed(list: &str, lines: &[&str], places: &mut Places) {
    let mut line = None;
    for word in list.split(' ') {
        match word.parse::<usize>() {
            Ok(number) => line = number.checked_sub(1).and_then(|at| lines.get(at)),
            Err(_) => places
                .note(line.is_some_and(|line| line.contains(word) || plain(line).contains(word))),
        }
    }
}

/// Everything over 1 500 bytes becomes a preview, and less once it is old.
const POLICY: &str = "preset = \"recommended\"\npreview_above = 1_500\nkeep_file_reads = false\nmax_tokens_for_clear = 9_000\nclear_at_least_tokens = 1_000";

fn build(is_shifted: bool) -> ToolReduction {
    let builder = ToolReduction::builder()
        .settings(Settings::from_toml(POLICY).unwrap(), stores::open)
        .backend(Memory::new());
    let builder = if is_shifted {
        builder.preview_with(|of| shifted(&Preview::Mixed.show(of.text, of.budget)))
    } else {
        builder
    };
    builder.build().unwrap()
}

/// A preview in which each number of a line is one too high.
fn shifted(preview: &str) -> String {
    let mut rows = Vec::new();
    for row in preview.lines() {
        let after = |number: &str| number.parse::<u64>().map(|number| number + 1);
        let digits = row.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        rows.push(match after(&row[..digits]) {
            Ok(next) if row[digits..].starts_with(['|', '+']) => {
                format!("{next}{}", &row[digits..])
            }
            _ if row.starts_with("names: ") => {
                let words = row
                    .split(' ')
                    .map(|word| after(word).map_or(word.into(), |next| next.to_string()));
                words.collect::<Vec<String>>().join(" ")
            }
            _ => row.to_owned(),
        });
    }
    rows.join("\n")
}

/// The page that the reader returns for a place.
async fn read(reduction: &ToolReduction, location: &str, offset: &str) -> String {
    let reader = reduction.read_file_tool();
    let arguments = json!({"path": location, "offset": offset}).to_string();
    let call = ToolCall::new("page", reader.definition().name, arguments);
    let (parts, _) = reader.call(&call).await.unwrap().into_parts().await;
    let page = Hint::parse(&text_of(&parts));
    page.map_or_else(String::new, |page| page.preview)
}

/// Reads each place in the preview of `hint`, and compares.
async fn read_each(
    hint: &Hint,
    location: &str,
    stored: &str,
    reduction: &ToolReduction,
    places: &mut Places,
) {
    let numbered = Regex::new(r"^([0-9]+)((?:\+[0-9]+)?)\|(.*)$").unwrap();
    for row in hint.preview.split('\n') {
        let is_own = stored.split('\n').any(|line| line == row);
        if let Some(found) = numbered.captures(row) {
            let page = read(reduction, location, &format!("{}{}", &found[1], &found[2])).await;
            let body = found[3].trim_matches('…');
            let is_right = shows(page.lines().next().unwrap_or_default(), body);
            if is_right || !stored.contains(row.trim_end_matches('…')) {
                places.quoted += 1;
                places.wrong += u64::from(!is_right);
            }
        } else if row.starts_with("names: ") && !is_own {
            let mut line = String::new();
            for word in row["names: ".len()..].split(' ') {
                if let Ok(whole) = word.parse::<usize>() {
                    // A long line takes several pages.
                    line = stored
                        .split('\n')
                        .nth(whole - 1)
                        .unwrap_or_default()
                        .to_owned();
                    let page = read(reduction, location, word).await;
                    assert!(page.is_empty() || line.starts_with(page.lines().next().unwrap()));
                    continue;
                }
                places.quoted += 1;
                places.wrong += u64::from(!line.contains(word));
            }
        }
    }
}

/// Counts the places in all previews, each when its message has just changed, and checks that reading each of
/// them finds the same.
async fn places_of(messages: &[Message], reduction: &ToolReduction) -> Places {
    let (mut now, mut open) = (Vec::<Message>::new(), Vec::<ToolCall>::new());
    let (mut found, mut expected) = (Places::default(), Places::default());
    for message in messages {
        let mut before = now.clone();
        let mut message = message.clone();
        match &mut message {
            Message::Assistant { calls, .. } => {
                let mut conversation = Messages::new(Plain, &mut now);
                let mut turn = Turn::new(&mut conversation);
                reduction.clear_turn(&mut turn).await.unwrap();
                open.clone_from(calls);
            }
            other => {
                before.push(other.clone());
                arrive(reduction, &mut open, other).await;
            }
        }
        now.push(message);
        let changed = before.iter().zip(&now).filter(|(old, new)| old != new);
        for (_, new) in changed {
            for text in texts(new) {
                let hints = Hint::parse_all(&text).unwrap_or_default().into_iter();
                for hint in hints.filter(|hint| hint.kind == Kind::Truncated) {
                    let Some(location) = &hint.location else {
                        continue;
                    };
                    let stored = reduction.read_original(location).await.unwrap().unwrap();
                    let stored = String::from_utf8_lossy(&stored);
                    found.add(places(&hint.preview, &stored));
                    read_each(&hint, location.as_str(), &stored, reduction, &mut expected).await;
                }
            }
        }
    }
    assert_eq!(found, expected);
    found
}

/// Texts of a message, and strings in its arguments.
fn texts(message: &Message) -> Vec<String> {
    fn strings(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => found.push(text.clone()),
            serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
            serde_json::Value::Object(fields) => {
                fields.values().for_each(|field| strings(field, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    match message {
        Message::Tool { content, .. } => {
            found.extend(
                content
                    .iter()
                    .map(|part| text_of(std::slice::from_ref(part))),
            );
        }
        Message::Assistant { calls, .. } => {
            for call in calls {
                match serde_json::from_str(&call.arguments) {
                    Ok(arguments) => strings(&arguments, &mut found),
                    Err(_) => found.push(call.arguments.clone()),
                }
            }
        }
        Message::System { .. } | Message::User { .. } => {}
    }
    found
}

fn run(messages: &[Message], is_shifted: bool) -> Places {
    let runtime = settings::runtime().unwrap();
    runtime.block_on(places_of(messages, &build(is_shifted)))
}

#[test]
fn each_kind_of_place_is_checked() {
    let text = "alpha_one\nbeta_two of 12\n7|own\nnames: 3 own_list\nlong: a_b c_d e_f\nend";
    let of = |preview: &str| {
        let Places { quoted, wrong } = places(preview, text);
        (quoted, wrong)
    };
    assert_eq!(of("2|beta_two of 12\n7|own\n[… 9 B …]"), (1, 0));
    assert_eq!(of("3|beta_two of 12"), (1, 1));
    assert_eq!(of("0|beta_two of 12\n99|end"), (2, 2));
    assert_eq!(of("5+6|…a_b…\n5+8|…a_b…"), (2, 1));
    assert_eq!(of("names: 1 alpha_one 5 a_b c_d"), (3, 0));
    assert_eq!(of("names: 1 alpha_one 2 a_b 77 e_f"), (3, 2));
    assert_eq!(of("names: 3 own_list\nplain"), (0, 0));
    assert_eq!(of("alpha_one\n[… 30 B …]\nend"), (0, 0));
    assert_eq!(
        of("[6 records]\nline|a|b\n2|beta_two|12\n5|\"l|m\"|a_…\n1|beta_two|\n[… more …]"),
        (3, 1)
    );
    assert_eq!(of("[6 records]\n.rows[]|a\n9|beta_two\n[… more …]"), (0, 0));
}

#[test]
fn places_are_right_and_wrong_ones_are_counted() {
    let mut messages = vec![Message::user("go")];
    for round in 0..6 {
        let call = ToolCall::new(format!("c{round}"), "shell", "{}");
        let line =
            |n: u32| format!("fn read_page_{n}(from_{round}: usize) of src/part_{round}.rs\n");
        let text: String = (0..120).map(line).collect();
        messages.push(Message::calls(vec![call.clone()]));
        messages.push(Message::tool(&call, vec![text.into()], false));
    }
    messages.push(Message::assistant("That is all."));
    let sound = run(&messages, false);
    assert!(sound.quoted >= 6 && sound.wrong == 0, "{sound:?}");
    let wrong = run(&messages, true);
    assert!(wrong.wrong >= 6, "{wrong:?}");
}

#[test]
fn places_in_real_transcripts_are_right_and_a_naive_count_agrees() {
    let Some(mut chosen) =
        real_transcripts("places_in_real_transcripts_are_right_and_a_naive_count_agrees")
    else {
        return;
    };
    chosen.sort_by_key(Source::size);
    let (mut sound, mut wrong, mut compared) = (Places::default(), Places::default(), 0);
    for source in chosen.iter().step_by(8).take(8) {
        for messages in source.read().unwrap() {
            sound.add(run(&messages, false));
            wrong.add(run(&messages, true));
            compared += 1;
        }
    }
    writeln!(
        std::io::stderr(),
        "{compared} transcripts: {sound:?}; with shifted numbers {wrong:?}"
    )
    .unwrap();
    assert!(compared >= 3 && sound.quoted > 100, "{sound:?}");
    assert_eq!(sound.wrong, 0);
    assert!(wrong.wrong > wrong.quoted / 2, "{wrong:?}");
}
