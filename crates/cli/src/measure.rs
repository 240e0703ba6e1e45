//! The needs of a turn: names, lines, values, outcomes, its own earlier words, and old texts of edits.

mod edits;
mod outcomes;
mod values;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::evidence::{Kind, MessageText, Need, Read, names, quotable, unnumbered, used};

/// The needs of each turn of a transcript, in order.
pub(crate) fn needs(read: &Read<'_>) -> Vec<Vec<Need>> {
    let mut turns = taken(read);
    for more in [own(read), edits::of(read), outcomes::of(read)] {
        for (turn, more) in turns.iter_mut().zip(more) {
            turn.extend(more);
        }
    }
    turns
}

/// A hash that identifies a text of a kind.
pub(crate) fn key(kind: Kind, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, text).hash(&mut hasher);
    hasher.finish()
}

/// Keys of all values of `text`.
pub(crate) fn values(text: &str) -> HashSet<u64> {
    let mut keys = HashSet::new();
    values::each(text, |kind, value| {
        keys.insert(key(kind, value));
    });
    keys
}

/// Finds what each turn takes from results: names, lines and values that a result has and nobody has said before.
fn taken(read: &Read<'_>) -> Vec<Vec<Need>> {
    let (mut said, mut known) = (HashSet::new(), HashMap::<u64, Vec<usize>>::new());
    let mut turns = Vec::new();
    for (at, message) in read.messages.iter().enumerate() {
        if message.is_result() {
            for key in keys(message) {
                known.entry(key).or_default().push(at);
            }
            continue;
        }
        if message.is_turn() {
            turns.push(taken_by(message, &known, &said));
        }
        said.extend(keys(message));
    }
    turns
}

/// Keys of the names, lines and values of a message.
fn keys(message: &MessageText<'_>) -> HashSet<u64> {
    let mut keys = match message.is_result() {
        // A reader's line numbers are places, not values.
        true => values(&unnumbered(&message.text)),
        false => values(&message.text),
    };
    let names = names(&message.text).into_keys();
    keys.extend(names.map(|name| key(Kind::Name, name)));
    keys.extend(message.lines().iter().map(|line| key(Kind::Quote, line)));
    keys
}

/// The part of the `known` that a turn has and nobody has `said`.
fn taken_by(
    turn: &MessageText<'_>,
    known: &HashMap<u64, Vec<usize>>,
    said: &HashSet<u64>,
) -> Vec<Need> {
    let holders = |kind, text: &str| {
        let key = key(kind, text);
        known.get(&key).filter(|_| !said.contains(&key))
    };
    let names = used(&turn.text, |name| holders(Kind::Name, name).is_some());
    let mut found: Vec<(Kind, &str)> = names.into_iter().map(|name| (Kind::Name, name)).collect();
    found.extend(turn.lines().into_iter().map(|line| (Kind::Quote, line)));
    values::each(&turn.text, |kind, value| found.push((kind, value)));
    found.sort_unstable();
    found.dedup();
    let need = |(kind, text): (Kind, &str)| {
        Some(Need {
            kind,
            text: text.to_owned(),
            holders: holders(kind, text)?.clone(),
        })
    };
    found.into_iter().filter_map(need).collect()
}

/// For each turn, the names and lines that arguments of earlier calls hold, with all messages that
/// hold them.
fn own(read: &Read<'_>) -> Vec<Vec<Need>> {
    let mut places = HashMap::<&str, Vec<usize>>::new();
    let mut argued = HashSet::new();
    let mut turns = Vec::new();
    for (at, message) in read.messages.iter().enumerate() {
        let mut here: Vec<&str> = message
            .written
            .iter()
            .flat_map(|text| words(text))
            .collect();
        here.sort_unstable();
        here.dedup();
        if message.is_turn() {
            let again = here.iter().filter(|text| argued.contains(*text));
            let need = |text: &&str| Need {
                kind: Kind::Own,
                text: (*text).to_owned(),
                holders: places.get(text).cloned().unwrap_or_default(),
            };
            turns.push(again.map(need).collect());
            // The first text is the content; the others are arguments.
            argued.extend(message.written.iter().skip(1).flat_map(|text| words(text)));
        }
        for text in here {
            places.entry(text).or_default().push(at);
        }
    }
    turns
}

/// The names and lines of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    names(text).into_keys().chain(quotable(text))
}

#[cfg(test)]
mod tests {
    use offcut::ToolCall;
    use offcut::format::Message;

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
        let turns = taken(&read);
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
        assert_eq!(taken(&read)[1], [quote]);
    }
}
