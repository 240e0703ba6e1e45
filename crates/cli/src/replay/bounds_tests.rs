//! Bounds on success compared with a naive count, which looks at everything again at each call.

use std::io::Write as _;

use offcut::format::{Message, Messages, Plain};
use offcut::hint::Hint;
use offcut::{Settings, ToolCall, ToolReduction, Turn};
use serde_json::Value;

use super::agent::replay;
use super::naive_tests::{arrive, real_transcripts, text_of, without_places};
use super::seen_tests::filler;
use super::{Bounds, Read, Ruler, Script, scratch};
use crate::settings;
use crate::transcript::Source;

/// Cuts each result of over 600 bytes to its first 150 and last 150 bytes, and clears old ones.
const CUT: &str = "max_length_for_trunc = 900\npreview_length = 300\nmax_tokens_for_clear = 2_000";

fn build() -> ToolReduction {
    let settings = Settings::from_toml(CUT).unwrap();
    settings::build(&settings, "a test", Some(scratch())).unwrap()
}

fn strings(value: &Value, field: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(field, value)| strings(value, field, found)),
        Value::Array(values) => values.iter().for_each(|value| strings(value, field, found)),
        other => found.push((field.to_owned(), other.clone())),
    }
}

/// The texts of a message: its content, and the strings in arguments of its calls.
fn said(message: &Message) -> String {
    match message {
        Message::Tool { content, .. } | Message::System { content } | Message::User { content } => {
            without_places(&text_of(content))
        }
        Message::Assistant { content, calls } => {
            let mut texts = vec![text_of(content)];
            for call in calls {
                match serde_json::from_str(&call.arguments) {
                    Ok(arguments) => {
                        let mut found = Vec::new();
                        strings(&arguments, "", &mut found);
                        texts.extend(
                            found
                                .iter()
                                .filter_map(|(_, value)| value.as_str())
                                .map(str::to_owned),
                        );
                    }
                    Err(_) => texts.push(call.arguments.clone()),
                }
            }
            without_places(&texts.join("\n"))
        }
    }
}

/// The texts that calls of a turn repeat, with the name of the tool.
fn repeated(calls: &[ToolCall]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for call in calls {
        let name = call.name.to_lowercase();
        let changes = "edit write create update delete remove insert replace patch apply send book cancel pay order \
                       add set move commit push post put assign exchange return modify";
        let begins = |word: &str| {
            name.match_indices(word)
                .any(|(at, _)| at == 0 || !name.as_bytes()[at - 1].is_ascii_lowercase())
        };
        let Ok(arguments) = serde_json::from_str(&call.arguments) else {
            continue;
        };
        if !changes.split_whitespace().any(begins) {
            continue;
        }
        let mut values = Vec::new();
        strings(&arguments, "", &mut values);
        for (field, value) in values {
            let olds = [
                "old_string",
                "old_str",
                "oldText",
                "old_text",
                "oldString",
                "old",
                "search",
            ];
            let text = match &value {
                Value::String(text) if olds.contains(&field.as_str()) => {
                    without_places(text.trim_matches('\n'))
                }
                Value::String(text)
                    if text.len() <= 200
                        && !text.contains(char::is_whitespace)
                        && text.contains(|c: char| c.is_ascii_digit() || "_/.-".contains(c)) =>
                {
                    text.clone()
                }
                Value::Number(number) => number.to_string(),
                _ => continue,
            };
            if text.len() >= 3 {
                found.push((call.name.clone(), text));
            }
        }
    }
    found
}

/// By call: the texts that were not in view, and whether a hint leads to each.
async fn naive(messages: &[Message]) -> Vec<(usize, String, bool)> {
    let reduction = build();
    let (mut now, mut open) = (Vec::<Message>::new(), Vec::<ToolCall>::new());
    let (mut found, mut turn) = (Vec::new(), 0);
    for message in messages {
        let mut message = message.clone();
        match &mut message {
            Message::Assistant { calls, .. } => {
                let mut conversation = Messages::new(Plain, &mut now);
                reduction
                    .clear_turn(&mut Turn::new(&mut conversation))
                    .await
                    .unwrap();
                for (_, text) in repeated(calls) {
                    let known: Vec<usize> = (0..now.len())
                        .filter(|at| said(&messages[*at]).contains(&text))
                        .collect();
                    let (mut is_seen, mut is_readable) = (known.is_empty(), false);
                    for at in known {
                        let (shown, stored) = shown(&now[at], &reduction).await;
                        is_seen |=
                            now[at] == messages[at] || without_places(&shown).contains(&text);
                        is_readable |=
                            stored.contains(&text) || without_places(&stored).contains(&text);
                    }
                    if !is_seen {
                        found.push((turn, text.chars().take(80).collect(), is_readable));
                    }
                }
                open.clone_from(calls);
                turn += 1;
            }
            other => arrive(&reduction, &mut open, other).await,
        }
        now.push(message);
    }
    found.sort();
    found.dedup();
    found
}

/// The text that a message shows, and the content that is stored where its hints lead.
async fn shown(message: &Message, reduction: &ToolReduction) -> (String, String) {
    let text = said(message);
    let (mut shown, mut stored) = (String::new(), String::new());
    let Message::Tool { content, .. } = message else {
        return (text, stored);
    };
    for part in content {
        let text = text_of(std::slice::from_ref(part));
        let Some(hints) = Hint::parse_all(&text) else {
            shown += &format!("{text}\n");
            continue;
        };
        for hint in hints {
            shown += &format!("{}\n{}\n", hint.preview, hint.prose);
            if let Some(location) = hint.location
                && let Some(Ok(original)) = reduction.read_original(&location).await
            {
                stored += &String::from_utf8_lossy(&original);
            }
        }
    }
    (shown, stored)
}

/// Compares, and returns the number of texts that were out of view.
fn assert_agrees(messages: &[Message], at: &str) -> usize {
    let (read, ruler) = (Read::of(messages), Ruler::new().unwrap());
    let script = Script::new(messages, &read, &ruler);
    let runtime = settings::runtime().unwrap();
    let done = runtime.block_on(replay(&script, Some(&build()))).unwrap();
    let expected = runtime.block_on(naive(messages));
    let mut own: Vec<(usize, String, bool)> = done
        .ungrounded
        .iter()
        .map(|one| (one.call, one.text.clone(), one.is_readable))
        .collect();
    own.sort();
    own.dedup();
    assert_eq!(own, expected, "{at}");
    let bounds = Bounds::of([&done.ungrounded[..]].into_iter());
    let expected = [
        usize::from(expected.is_empty()),
        usize::from(expected.iter().all(|(_, _, is_readable)| *is_readable)),
    ];
    assert_eq!([bounds.at_least, bounds.at_most], expected, "{at}");
    own.len()
}

#[test]
fn a_naive_count_of_bounds_agrees() {
    let mut messages = vec![Message::user("Mend /srv/known.rs.")];
    for round in 0..9_u64 {
        let look = ToolCall::new(format!("a{round}"), "view", r#"{"file": "x"}"#);
        let filler = filler(30);
        let text = format!("head_{round}\n{filler}12→let of_round_{round} = {round};\n{filler}");
        let arguments = [
            serde_json::json!({"path": "/srv/known.rs", "old_string": format!("let of_round_{round} = {round};")}),
            serde_json::json!({"path": format!("head_{}", round / 3), "size": 100 + round}),
        ];
        let edit = |index: usize, name: &str| {
            ToolCall::new(format!("{name}{round}"), name, arguments[index].to_string())
        };
        let edits = vec![edit(0, "Edit"), edit(1, "move_file")];
        messages.push(Message::calls(vec![look.clone()]));
        messages.push(Message::tool(&look, vec![text.into()], false));
        messages.push(Message::calls(edits.clone()));
        let done = |call: &ToolCall| Message::tool(call, vec!["Done.".into()], false);
        messages.extend(edits.iter().map(done));
    }
    assert!(assert_agrees(&messages, "our own session") >= 9);
}

#[test]
fn a_naive_count_of_bounds_agrees_on_real_transcripts() {
    let Some(mut chosen) = real_transcripts("a_naive_count_of_bounds_agrees_on_real_transcripts")
    else {
        return;
    };
    // Looking everything up again at each call is slow: some short ones will do.
    chosen.sort_by_key(Source::size);
    let (mut compared, mut all) = (0, 0);
    for source in chosen.iter().step_by(5).take(10) {
        for messages in source.read().unwrap().0 {
            let found = assert_agrees(&messages, &source.name());
            compared += usize::from(found > 0);
            all += found;
        }
    }
    writeln!(
        std::io::stderr(),
        "{all} texts out of view in {compared} transcripts"
    )
    .unwrap();
    assert!(
        compared >= 3 && all > 10,
        "{all} texts in {compared} transcripts"
    );
}
