//! A naive count of needs, with loops of its own over messages, which looks at everything again at each
//! call; the truncation of a result as an agent loop does it; and the transcripts to compare over.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use offcut::format::{Message, Messages, Plain};
use offcut::hint::Hint;
use offcut::{Part, ToolCall, ToolOutput, ToolReduction, Turn};

use crate::transcript::{Source, sources};

/// The transcripts that `OFFCUT_TRACES` names; without them, says that `test` is skipped.
pub(super) fn real_transcripts(test: &str) -> Option<Vec<Source>> {
    let folder = std::env::var_os("OFFCUT_TRACES").map(PathBuf::from);
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        let skipped = "OFFCUT_TRACES names no folder with transcripts";
        writeln!(std::io::stderr(), "SKIPPED {test}: {skipped}").unwrap();
        return None;
    };
    Some(sources(&[folder]).unwrap())
}

/// Truncates a message if it is a result: that of the first of the `open` calls with its id.
pub(super) async fn arrive(
    reduction: &ToolReduction,
    open: &mut Vec<ToolCall>,
    message: &mut Message,
) {
    let Message::Tool {
        call_id,
        name,
        content,
        is_error,
    } = message
    else {
        return;
    };
    let at = open.iter().position(|call| call.id == *call_id);
    let call = at.map_or_else(
        || ToolCall::new(&*call_id, &*name, ""),
        |at| open.remove(at),
    );
    let mut output = ToolOutput::parts(content.clone());
    output.is_error = *is_error;
    *content = reduction.truncate(&call, output).await.unwrap().parts;
}

pub(super) fn text_of(parts: &[Part]) -> String {
    let mut texts = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text.clone()),
            Part::Json(value) => texts.push(value.to_string()),
            _ => {}
        }
    }
    texts.join("\n")
}

/// Text without the numbers that readers of files put before lines.
pub(super) fn without_places(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let trimmed = line.trim_start();
        let sign = trimmed.find(|c: char| !c.is_ascii_digit());
        let rest = sign.filter(|at| *at > 0).map(|at| &trimmed[at..]);
        let mut chars = rest.unwrap_or_default().chars();
        lines.push(match chars.next() {
            Some('→' | ':' | '|' | '\t') => chars.as_str(),
            _ => line,
        });
    }
    lines.join("\n")
}

fn whole(message: &Message) -> String {
    match message {
        Message::Tool { content, .. } => without_places(&text_of(content)),
        Message::System { content } | Message::User { content } => text_of(content),
        Message::Assistant { content, calls } => {
            let mut text = text_of(content);
            for call in calls {
                text += &format!(" {} {}", call.name, call.arguments);
            }
            text
        }
    }
}

/// Text in which hints stand as what they preview and say.
fn as_shown(message: &Message) -> String {
    let Message::Tool { content, .. } = message else {
        return whole(message);
    };
    let mut shown = String::new();
    for part in content {
        let text = text_of(std::slice::from_ref(part));
        match Hint::parse_all(&text) {
            Some(hints) => {
                for hint in hints {
                    shown += &format!("{}\n{}\n", without_places(&hint.preview), hint.prose);
                }
            }
            None => shown += &format!("{}\n", without_places(&text)),
        }
    }
    shown
}

fn numbers(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let is_word = |at: usize| {
        chars
            .get(at)
            .is_some_and(|c| c.is_alphanumeric() || *c == '_')
    };
    let is_digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        if !is_digit(at) {
            at += 1;
            continue;
        }
        let start = at;
        while is_digit(at) || matches!(chars.get(at), Some('.' | ',')) && is_digit(at + 1) {
            at += 1;
        }
        let number: String = chars[start..at].iter().collect();
        let before = start > 0 && is_word(start - 1);
        if !before && !is_word(at) && number.chars().filter(char::is_ascii_digit).count() >= 3 {
            found.push(number);
        }
    }
    found
}

fn flags(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    for (at, _) in text.match_indices("--") {
        let before = text[..at].chars().next_back();
        let name: String = text[at + 2..].chars().take_while(|c| is_part(*c)).collect();
        let name = name.trim_end_matches('-');
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if starts
            && name.len() > 1
            && !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        {
            found.push(format!("--{name}"));
        }
    }
    found
}

/// Needed and seen, by kind, looked up in everything at each call.
pub(super) async fn naive(
    messages: &[Message],
    reduction: &ToolReduction,
) -> BTreeMap<&'static str, [u64; 2]> {
    type Find = fn(&str) -> Vec<String>;
    let kinds: [(&'static str, Find); 2] = [("numbers", numbers), ("flags", flags)];
    let (mut now, mut open) = (Vec::<Message>::new(), Vec::<ToolCall>::new());
    let mut counts = BTreeMap::new();
    for message in messages {
        let mut message = message.clone();
        match &mut message {
            Message::Assistant { calls, .. } => {
                open.clone_from(calls);
                let mut conversation = Messages::new(Plain, &mut now);
                let mut turn = Turn::new(&mut conversation);
                reduction.clear_turn(&mut turn).await.unwrap();
                for (name, find) in kinds {
                    let [needed, seen] = counts.entry(name).or_insert([0, 0]);
                    let mut done = Vec::new();
                    for value in find(&whole(&message)) {
                        let holds = |text: String| find(&text).contains(&value);
                        let is_result = |at: usize| matches!(messages[at], Message::Tool { .. });
                        let before = 0..now.len();
                        let said = before
                            .clone()
                            .any(|at| !is_result(at) && holds(whole(&messages[at])));
                        let held: Vec<usize> = before
                            .filter(|at| is_result(*at) && holds(whole(&messages[*at])))
                            .collect();
                        if said || held.is_empty() || done.contains(&value) {
                            continue;
                        }
                        *needed += 1;
                        *seen += u64::from(
                            held.iter()
                                .any(|at| now[*at] == messages[*at] || holds(as_shown(&now[*at]))),
                        );
                        done.push(value);
                    }
                }
            }
            other => arrive(reduction, &mut open, other).await,
        }
        now.push(message);
    }
    counts
}
