//! Places in previews compared with a naive count, which reads each of them with the real reader.

use std::io::Write as _;

use offcut::agent::Tool;
use offcut::format::{Message, Messages, Plain};
use offcut::hint::{Hint, Kind};
use offcut::preview::Preview;
use offcut::{Settings, ToolCall, ToolReduction, Turn};
use regex::Regex;
use serde_json::json;

use super::agent::replay;
use super::naive_tests::{arrive, real_transcripts, text_of};
use super::places::{Places, shows};
use super::{Read, Ruler, Script, scratch};
use crate::transcript::Source;
use crate::{settings, stores};

/// Everything over 1 500 bytes becomes a preview, and less once it is old.
const POLICY: &str = "preset = \"recommended\"\npreview_above = 1_500\nkeep_file_reads = false\nmax_tokens_for_clear = 9_000\nclear_at_least_tokens = 1_000";

fn build(is_shifted: bool) -> ToolReduction {
    let builder = ToolReduction::builder()
        .settings(Settings::from_toml(POLICY).unwrap(), stores::open)
        .backend(scratch());
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

async fn count(hint: &Hint, reduction: &ToolReduction, places: &mut Places) {
    let Some(location) = hint
        .location
        .as_ref()
        .filter(|_| hint.kind == Kind::Truncated)
    else {
        return;
    };
    let stored = reduction.read_original(location).await.unwrap().unwrap();
    let stored = String::from_utf8_lossy(&stored).into_owned();
    let location = location.as_str();
    let numbered = Regex::new(r"^([0-9]+)((?:\+[0-9]+)?)\|(.*)$").unwrap();
    let mark = Regex::new(r"^\[… [0-9]+ B, L([0-9]+)(?:-([0-9]+))? …\]$").unwrap();
    let rows: Vec<&str> = hint.preview.split('\n').collect();
    for (at, row) in rows.iter().enumerate() {
        let is_own = stored.split('\n').any(|line| line == *row);
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
        } else if let Some(found) = mark.captures(row).filter(|_| !is_own) {
            let first: usize = found[1].parse().unwrap();
            let last: usize = found
                .get(2)
                .map_or(first, |last| last.as_str().parse().unwrap());
            let all: Vec<&str> = stored.split('\n').collect();
            let holds =
                |line: usize, row: &str| all.get(line - 1).is_some_and(|line| line.contains(row));
            let is_right =
                (at == 0 || holds(first, rows[at - 1]) || holds(first - 1, rows[at - 1]))
                    && (holds(last, rows[at + 1]) || holds(last + 1, rows[at + 1]));
            places.quoted += 1;
            places.wrong += u64::from(!is_right);
        }
    }
}

/// Counts the places in all previews, each when its message has just changed.
async fn naive(messages: &[Message], reduction: &ToolReduction) -> Places {
    let (mut now, mut open) = (Vec::<Message>::new(), Vec::<ToolCall>::new());
    let mut places = Places::default();
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
                for hint in Hint::parse_all(&text).unwrap_or_default() {
                    count(&hint, reduction, &mut places).await;
                }
            }
        }
    }
    places
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

fn assert_agrees(messages: &[Message], is_shifted: bool, at: &str) -> Places {
    let (read, ruler) = (Read::of(messages), Ruler::new().unwrap());
    let script = Script::new(messages, &read, &ruler);
    let runtime = settings::runtime().unwrap();
    let reduction = build(is_shifted);
    let done = runtime.block_on(replay(&script, Some(&reduction))).unwrap();
    let expected = runtime.block_on(naive(messages, &build(is_shifted)));
    assert_eq!(done.figures.places, expected, "{at}, shifted: {is_shifted}");
    expected
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
    let sound = assert_agrees(&messages, false, "our own session");
    assert!(sound.quoted >= 6 && sound.wrong == 0, "{sound:?}");
    let wrong = assert_agrees(&messages, true, "our own session");
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
        for messages in source.read().unwrap().0 {
            sound.add(assert_agrees(&messages, false, &source.name()));
            wrong.add(assert_agrees(&messages, true, &source.name()));
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
