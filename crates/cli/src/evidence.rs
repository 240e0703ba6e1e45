//! Evidence of what an agent took from tool results: for each turn, the distinctive strings and
//! quoted lines that can only come from there.

mod lines;
mod names;
mod pattern;

use std::collections::{HashMap, HashSet};

use offcut::format::Message;
use offcut::{Part, ToolCall};
use serde_json::Value;

pub(crate) use lines::{quotable, unnumbered};
pub(crate) use names::{NamePlaces, names};
pub(crate) use pattern::pattern;

/// Number of characters to each side of a string that show its context.
const WINDOW: usize = 40;

/// The messages of a transcript, as texts.
pub(crate) struct Read {
    pub(crate) messages: Vec<MessageText>,
}

pub(crate) struct MessageText {
    pub(crate) speaker: Speaker,
    /// Content, and the names and arguments of calls.
    pub(crate) text: String,
    /// Texts that may quote: content, and strings in arguments.
    pub(crate) written: Vec<String>,
    pub(crate) calls: Vec<ToolCall>,
    /// The id of the call that it answers; empty unless it is a result.
    pub(crate) answers: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Tool,
    Assistant,
    Other,
}

/// Uses of a transcript's results by its turns.
pub(crate) struct Evidence<'r> {
    pub(crate) turns: Vec<Turn>,
    /// By message: results as the tool returned them, and their names.
    results: HashMap<usize, (&'r str, NamePlaces<'r>)>,
}

/// A turn of the assistant.
pub(crate) struct Turn {
    pub(crate) names: Vec<Use>,
    pub(crate) quotes: Vec<Use>,
}

/// Something that the assistant says and that only tools have said before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) text: String,
    /// The messages whose results hold it, in order; never empty.
    pub(crate) results: Vec<usize>,
}

/// Joins all texts of `parts`, each starting on a new line.
pub(crate) fn text_of(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let separator = if text.is_empty() { "" } else { "\n" };
        match part {
            Part::Text(part) => text.extend([separator, part]),
            Part::Json(value) => text.extend([separator, &value.to_string()]),
            Part::Media { .. } | Part::Link { .. } | Part::Opaque(_) => {}
        }
    }
    text
}

impl Read {
    pub(crate) fn of(messages: &[Message]) -> Self {
        Self {
            messages: messages.iter().map(MessageText::from_message).collect(),
        }
    }

    /// Returns the text before and after the first occurrence of `used` in a message, at most
    /// `most` characters each.
    pub(crate) fn around(&self, message: usize, used: &str, most: usize) -> (String, String) {
        let Some(said) = self.messages.get(message) else {
            return Default::default();
        };
        let places = std::iter::once(&said.text).chain(&said.written);
        let Some((before, after)) = places.filter_map(|text| text.split_once(used)).next() else {
            return Default::default();
        };
        let first = before.char_indices().rev().take(most).last();
        let from = first.map_or(before.len(), |(at, _)| at);
        (
            before[from..].to_owned(),
            after.chars().take(most).collect(),
        )
    }
}

impl MessageText {
    fn from_message(message: &Message) -> Self {
        let (speaker, content, calls, answers) = match message {
            Message::Tool {
                content, call_id, ..
            } => (Speaker::Tool, content, &[][..], call_id.as_str()),
            Message::Assistant { content, calls } => (Speaker::Assistant, content, &calls[..], ""),
            Message::System { content } | Message::User { content } => {
                (Speaker::Other, content, &[][..], "")
            }
        };
        let mut text = text_of(content);
        let mut written = vec![text.clone()];
        for call in calls {
            text.extend([" ", &call.name, " ", &call.arguments]);
            written.extend(argued(&call.arguments));
        }
        Self {
            speaker,
            text,
            written,
            calls: calls.to_vec(),
            answers: answers.to_owned(),
        }
    }
}

/// All strings in a call's arguments; the arguments as they stand if they are not JSON.
pub(crate) fn argued(arguments: &str) -> Vec<String> {
    let mut strings = Vec::new();
    match serde_json::from_str(arguments) {
        Ok(arguments) => strings_of(&arguments, &mut strings),
        Err(_) => strings.push(arguments.to_owned()),
    }
    strings
}

fn strings_of(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| strings_of(value, into)),
        Value::Object(fields) => fields.values().for_each(|value| strings_of(value, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl<'r> Evidence<'r> {
    /// Finds what the turns of `read` take from its results.
    pub(crate) fn of(read: &'r Read) -> Self {
        let (mut said_names, mut said_lines) = (HashSet::new(), HashSet::new());
        let mut by_name = HashMap::<_, Vec<usize>>::new();
        let mut by_line = HashMap::<_, Vec<usize>>::new();
        let (mut turns, mut results) = (Vec::new(), HashMap::new());
        for (at, said) in read.messages.iter().enumerate() {
            let own_names = names(&said.text);
            let own_lines = said.written.iter().flat_map(|text| quotable(text));
            let own_lines: HashSet<&str> = own_lines.collect();
            if said.speaker == Speaker::Tool {
                for name in own_names.keys() {
                    by_name.entry(*name).or_default().push(at);
                }
                for line in own_lines {
                    by_line.entry(line).or_default().push(at);
                }
                results.insert(at, (&*said.text, own_names));
                continue;
            }
            if said.speaker == Speaker::Assistant {
                let used = names::used(&said.text, |name| {
                    by_name.contains_key(name) && !said_names.contains(name)
                });
                let mut quoted: Vec<&str> = own_lines.difference(&said_lines).copied().collect();
                quoted.sort_unstable();
                turns.push(Turn {
                    names: uses(&used, &by_name),
                    quotes: uses(&quoted, &by_line),
                });
            }
            said_names.extend(own_names.into_keys());
            said_lines.extend(own_lines);
        }
        Self { turns, results }
    }

    /// Returns true if `shown` holds any occurrence of `name` in the result of `message` with its
    /// surroundings on that line.
    pub(crate) fn is_window_in(&self, shown: &str, message: usize, name: &str) -> bool {
        self.results.get(&message).is_some_and(|(text, names)| {
            let mut places = names.get(name).into_iter().flatten();
            places.any(|at| shown.contains(window(text, *at, at + name.len())))
        })
    }
}

fn uses(found: &[&str], known: &HashMap<&str, Vec<usize>>) -> Vec<Use> {
    let of = |text: &&str| {
        Some(Use {
            text: (*text).to_owned(),
            results: known.get(text)?.clone(),
        })
    };
    found.iter().filter_map(of).collect()
}

/// Returns `start..end` of `text` with up to [`WINDOW`] characters on each side, within its line.
pub(crate) fn window(text: &str, start: usize, end: usize) -> &str {
    let before = text[..start]
        .char_indices()
        .rev()
        .take_while(|(_, c)| *c != '\n')
        .take(WINDOW);
    let after = text[end..]
        .char_indices()
        .take_while(|(_, c)| *c != '\n')
        .take(WINDOW);
    let from = before.last().map_or(start, |(at, _)| at);
    let to = after.last().map_or(end, |(at, c)| end + at + c.len_utf8());
    &text[from..to]
}

#[cfg(test)]
mod tests {
    use offcut::ToolCall;

    use super::*;

    fn call(arguments: &str) -> Message {
        Message::calls(vec![ToolCall::new("1", "edit", arguments)])
    }

    fn result(text: &str) -> Message {
        Message::tool(&ToolCall::new("1", "edit", ""), vec![text.into()], false)
    }

    fn names_of(turn: &Turn) -> Vec<&str> {
        turn.names.iter().map(|name| name.text.as_str()).collect()
    }

    #[test]
    fn only_strings_that_a_tool_said_first_count_once() {
        let messages = [
            Message::user("Fix parse_header, please."),
            call("{}"),
            result("fn parse_header() { read_frame() }"),
            Message::assistant("parse_header calls read_frame and never_seen_before"),
            Message::assistant("read_frame again"),
        ];
        let read = Read::of(&messages);
        let evidence = Evidence::of(&read);
        assert_eq!(
            evidence.turns.iter().map(names_of).collect::<Vec<_>>(),
            [vec![], vec!["read_frame"], vec![]]
        );
        assert_eq!(evidence.turns[1].names[0].results, [2]);
    }

    #[test]
    fn quotations_are_found_in_decoded_arguments() {
        let messages = [
            call("{}"),
            result("  7→\tlet total = \"sum of all\";\n  8→"),
            call(
                r#"{"edits": [{"old": "let total = \"sum of all\";", "new": "let total = 0; // nothing"}]}"#,
            ),
        ];
        let read = Read::of(&messages);
        let evidence = Evidence::of(&read);
        let quotes = &evidence.turns[1].quotes;
        assert_eq!(quotes.len(), 1, "{quotes:?}");
        assert_eq!(
            (quotes[0].text.as_str(), &quotes[0].results[..]),
            ("let total = \"sum of all\";", &[1][..])
        );
    }

    #[test]
    fn a_window_ends_with_its_line_or_after_forty_characters() {
        let text = format!("{}\nééé some_name x\nnext", "before ".repeat(10));
        let at = text.find("some_name").unwrap();
        assert_eq!(window(&text, at, at + 9), "ééé some_name x");
        let long = format!("{}some_name{}", "é".repeat(50), "ü".repeat(50));
        let at = long.find("some_name").unwrap();
        assert_eq!(
            window(&long, at, at + 9),
            format!("{}some_name{}", "é".repeat(40), "ü".repeat(40))
        );
    }
}
