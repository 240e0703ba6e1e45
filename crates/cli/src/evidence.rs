//! Evidence of what an agent took from tool results: for each turn, the distinctive strings and
//! quoted lines that can only come from there.

mod names;
mod pattern;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use offcut::format::Message;
use offcut::{Part, ToolCall};
use serde_json::Value;

pub(crate) use names::{NamePlaces, names};
pub(crate) use pattern::pattern;

/// Number of characters to each side of a string that show its context.
const WINDOW: usize = 40;
/// Minimum length of a quotation, in characters.
const MIN_LINE: usize = 20;

/// The messages of a transcript, as texts.
pub(crate) struct Read<'m> {
    pub(crate) messages: Vec<MessageText<'m>>,
}

pub(crate) struct MessageText<'m> {
    pub(crate) message: &'m Message,
    /// Content, and the names and arguments of calls.
    pub(crate) text: String,
    /// Texts that may quote: content, and strings in arguments.
    pub(crate) written: Vec<String>,
}

/// Results as the tool returned them, and their names, by message.
pub(crate) struct ResultNames<'r>(HashMap<usize, (&'r str, NamePlaces<'r>)>);

/// The content of a message, and its calls.
pub(crate) fn parts(message: &Message) -> (&[Part], &[ToolCall]) {
    match message {
        Message::Assistant { content, calls } => (content, calls),
        Message::Tool { content, .. } | Message::System { content } | Message::User { content } => {
            (content, &[])
        }
    }
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

impl<'m> Read<'m> {
    pub(crate) fn of(messages: &'m [Message]) -> Self {
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

impl<'m> MessageText<'m> {
    fn from_message(message: &'m Message) -> Self {
        let (content, calls) = parts(message);
        let mut text = text_of(content);
        let mut written = vec![text.clone()];
        for call in calls {
            text.extend([" ", &call.name, " ", &call.arguments]);
            written.extend(argued(&call.arguments));
        }
        Self {
            message,
            text,
            written,
        }
    }

    pub(crate) fn is_result(&self) -> bool {
        matches!(self.message, Message::Tool { .. })
    }

    pub(crate) fn is_turn(&self) -> bool {
        matches!(self.message, Message::Assistant { .. })
    }

    /// Its lines that are long enough to be a quotation.
    fn lines(&self) -> HashSet<&str> {
        self.written
            .iter()
            .flat_map(|text| quotable(text))
            .collect()
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

/// Finds what each turn takes from results: of what it has `used`, all that a result has as one of its `keys` and nobody
/// has said before.
pub(crate) fn taken<'r, K: Eq + Hash>(
    read: &'r Read<'r>,
    keys: impl Fn(&'r MessageText<'r>) -> HashSet<K>,
    used: impl Fn(&'r MessageText<'r>, &dyn Fn(&K) -> bool) -> Vec<(Kind, &'r str, K)>,
) -> Vec<Vec<Need>> {
    let (mut said, mut known) = (HashSet::new(), HashMap::<K, Vec<usize>>::new());
    let mut turns = Vec::new();
    for (at, message) in read.messages.iter().enumerate() {
        let own = keys(message);
        if message.is_result() {
            for key in own {
                known.entry(key).or_default().push(at);
            }
            continue;
        }
        if message.is_turn() {
            let used = used(message, &|key| {
                known.contains_key(key) && !said.contains(key)
            });
            let need = |(kind, text, key): (Kind, &str, K)| Need {
                kind,
                text: text.to_owned(),
                holders: known[&key].clone(),
            };
            turns.push(used.into_iter().map(need).collect());
        }
        said.extend(own);
    }
    turns
}

/// Names that each turn takes from results.
pub(crate) fn names_taken(read: &Read<'_>) -> Vec<Vec<Need>> {
    taken(
        read,
        |message| names(&message.text).into_keys().collect(),
        |message, is_taken| {
            let used = names::used(&message.text, |name| is_taken(&name));
            used.into_iter()
                .map(|name| (Kind::Name, name, name))
                .collect()
        },
    )
}

/// Lines that each turn takes from results.
pub(crate) fn lines_taken(read: &Read<'_>) -> Vec<Vec<Need>> {
    taken(read, MessageText::lines, |message, is_taken| {
        let mut lines: Vec<&str> = message.lines().into_iter().filter(is_taken).collect();
        lines.sort_unstable();
        lines
            .into_iter()
            .map(|line| (Kind::Quote, line, line))
            .collect()
    })
}

impl<'r> ResultNames<'r> {
    pub(crate) fn of(read: &'r Read<'r>) -> Self {
        let all = read.messages.iter().enumerate();
        let results = all.filter(|(_, message)| message.is_result());
        Self(
            results
                .map(|(at, message)| (at, (&*message.text, names(&message.text))))
                .collect(),
        )
    }

    /// Returns true if `shown` holds any occurrence of `name` in the result of `message` with its
    /// surroundings on that line.
    pub(crate) fn is_window_in(&self, shown: &str, message: usize, name: &str) -> bool {
        self.0.get(&message).is_some_and(|(text, names)| {
            let mut places = names.get(name).into_iter().flatten();
            places.any(|at| shown.contains(window(text, *at, at + name.len())))
        })
    }
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

/// Kinds of needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A distinctive string of a result.
    Name,
    /// A line of a result.
    Quote,
    /// A number of three digits and more.
    Number,
    /// An option such as `--flag`.
    Flag,
    /// Two capitalised words in a row.
    Noun,
    /// A date, a time, an amount of money or a percentage.
    Date,
    /// The verdict of a command that tests, builds, lints, checks or installs.
    Verdict,
    /// A line of such a command that reports a failure.
    Failing,
    /// A name or a line from arguments of the agent's own earlier calls.
    Own,
    /// An edit's old text.
    Edit,
}

impl Kind {
    /// All kinds in their order, with their names in tables.
    pub(crate) const ALL: [(Self, &str); 10] = [
        (Self::Name, "named"),
        (Self::Quote, "quoted"),
        (Self::Number, "numbers"),
        (Self::Flag, "flags"),
        (Self::Noun, "nouns"),
        (Self::Date, "dates"),
        (Self::Verdict, "verdicts"),
        (Self::Failing, "failing"),
        (Self::Own, "own"),
        (Self::Edit, "edits"),
    ];

    /// Returns true if an agent that lacks it would have to read it back.
    pub(crate) fn is_read_back(self) -> bool {
        !matches!(self, Self::Verdict | Self::Failing | Self::Edit)
    }
}

/// Something that a turn needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// Indexes of the messages that hold it, in order.
    pub(crate) holders: Vec<usize>,
}

/// Finds the lines of `text` with at least 20 characters, without whitespace at their ends: as
/// they stand, without the line number of a file reader, and without the `+` or `-` of a diff.
pub(crate) fn quotable(text: &str) -> HashSet<&str> {
    let mut found = HashSet::new();
    for line in text.split('\n') {
        let in_diff = line.strip_prefix(['+', '-']).unwrap_or_default();
        for quotation in [line, without_number(line), in_diff].map(str::trim) {
            if quotation.chars().nth(MIN_LINE - 1).is_some() {
                found.insert(quotation);
            }
        }
    }
    found
}

/// Returns `text` without the numbers that a file reader puts before its lines.
pub(crate) fn unnumbered(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').map(without_number).collect();
    lines.join("\n")
}

/// Strips the number from `12→text`, `12: text`, `12|text` and `12<TAB>text`.
fn without_number(line: &str) -> &str {
    let numbered = line.trim_start();
    let rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == numbered.len() {
        return line;
    }
    rest.strip_prefix(['→', ':', '|', '\t']).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &str) -> Message {
        Message::calls(vec![ToolCall::new("1", "edit", arguments)])
    }

    fn result(text: &str) -> Message {
        Message::tool(&ToolCall::new("1", "edit", ""), vec![text.into()], false)
    }

    fn texts_of(turn: &[Need]) -> Vec<&str> {
        turn.iter().map(|need| need.text.as_str()).collect()
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
        let turns = names_taken(&read);
        assert_eq!(
            turns.iter().map(|turn| texts_of(turn)).collect::<Vec<_>>(),
            [vec![], vec!["read_frame"], vec![]]
        );
        assert_eq!(turns[1][0].holders, [2]);
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
        let quote = Need {
            kind: Kind::Quote,
            text: "let total = \"sum of all\";".to_owned(),
            holders: vec![1],
        };
        assert_eq!(lines_taken(&read)[1], [quote]);
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

    #[test]
    fn short_lines_are_not_quotations() {
        assert!(quotable("nineteen characters\n   nineteen characters   ").is_empty());
        assert_eq!(
            quotable("  twenty characters it\n"),
            HashSet::from(["twenty characters it"])
        );
    }

    #[test]
    fn line_numbers_and_diff_marks_are_ignored() {
        for line in [
            "   12→let total = sum(values);",
            "12: let total = sum(values);",
            "+    let total = sum(values);",
        ] {
            assert!(
                quotable(line).contains("let total = sum(values);"),
                "{line}"
            );
        }
        assert!(!quotable("12 let total = sum(values);").contains("let total = sum(values);"));
    }
}
