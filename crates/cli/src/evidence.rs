//! Evidence of what an agent took from tool results: for each turn, the distinctive strings and
//! quoted lines that can only come from there.

mod names;

use std::collections::HashSet;

use offcut::format::Message;
use offcut::{Part, ToolCall};
use regex::Regex;
use serde_json::Value;

pub(crate) use names::{NamePlaces, names, used};

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
    pub(crate) fn around(&self, message: usize, used: &str, most: usize) -> (&str, &str) {
        let said = &self.messages[message];
        let mut texts = std::iter::once(&said.text).chain(&said.written);
        let found = texts.find_map(|text| Some((text, text.find(used)?)));
        let Some((text, start)) = found else {
            return ("", "");
        };
        let end = start + used.len();
        let (from, to) = surroundings(text, start, end, most, |_| false);
        (&text[from..start], &text[end..to])
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
    pub(crate) fn lines(&self) -> HashSet<&str> {
        let written = self.written.iter();
        written.flat_map(|text| quotable(text)).collect()
    }
}

/// All strings in a call's arguments; the arguments as they stand if they are not JSON.
pub(crate) fn argued(arguments: &str) -> Vec<String> {
    let mut strings = Vec::new();
    match serde_json::from_str(arguments) {
        Ok(arguments) => each_string("", &arguments, &mut |_, text| strings.push(text.to_owned())),
        Err(_) => strings.push(arguments.to_owned()),
    }
    strings
}

/// Shows all strings in a value, each after the name of the field that it is in.
pub(crate) fn each_string(field: &str, value: &Value, see: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => see(field, text),
        Value::Array(values) => values
            .iter()
            .for_each(|value| each_string(field, value, see)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(field, value)| each_string(field, value, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Compiles a constant pattern, which every test does too.
#[allow(
    clippy::expect_used,
    reason = "a constant pattern, compiled by every test"
)]
pub(crate) fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a regular expression")
}

/// Returns `start..end` of `text` with up to [`WINDOW`] characters on each side, within its line.
pub(crate) fn window(text: &str, start: usize, end: usize) -> &str {
    let (from, to) = surroundings(text, start, end, WINDOW, |c| c == '\n');
    &text[from..to]
}

/// Widens `start..end` by up to `most` characters on each side, as long as none is a border.
fn surroundings(
    text: &str,
    start: usize,
    end: usize,
    most: usize,
    is_border: impl Fn(char) -> bool,
) -> (usize, usize) {
    let is_inside = |(_, c): &(usize, char)| !is_border(*c);
    let before = text[..start].char_indices().rev();
    let before = before.take_while(is_inside).take(most).last();
    let after = text[end..].char_indices();
    let after = after.take_while(is_inside).take(most).last();
    (
        before.map_or(start, |(at, _)| at),
        after.map_or(end, |(at, c)| end + at + c.len_utf8()),
    )
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
