//! Changes of a text by which a server gets Offcut in front, or loses it.

use std::ops::Range;

use super::server::{ArgsPlace, BEGINNINGS, ServerCommand};

/// A place of the text, and what takes it.
pub(super) type TextEdit = (Range<usize>, String);

/// The changes that put words in front of a command.
pub(super) fn wrapping(text: &str, command: &ServerCommand, front: &[String]) -> Vec<TextEdit> {
    // A string of JSON is one of TOML too.
    let quoted = |word: &String| serde_json::Value::from(word.as_str()).to_string();
    let front: Vec<String> = front.iter().map(quoted).collect();
    let (own, first) = (command.places[0].clone(), command.places.get(1));
    let (program, words) = (front[0].clone(), front[1..].join(", "));
    let original = &text[own.clone()];
    match command.args {
        ArgsPlace::Inside => vec![(own.start..own.start, front.join(", ") + ", ")],
        ArgsPlace::Missing { beginning } => {
            vec![(own, format!("{program}{beginning}{words}, {original}]"))]
        }
        ArgsPlace::List { start } => {
            let (at, comma) = first.map_or((start + 1, ""), |first| (first.start, ", "));
            vec![
                (own.clone(), program),
                (at..at, format!("{words}, {original}{comma}")),
            ]
        }
    }
}

/// The changes that take Offcut's words from the front of a command, also where the text was written anew.
pub(super) fn unwrapping(text: &str, command: &ServerCommand) -> Vec<TextEdit> {
    let (places, nth) = (&command.places, command.front());
    let (own, original) = (places[0].clone(), &places[nth]);
    if matches!(command.args, ArgsPlace::Inside) {
        return vec![(own.start..original.start, String::new())];
    }
    let between = text.get(own.end..places[1].start);
    let is_begun = between.is_some_and(|between| BEGINNINGS.contains(&between));
    let command = text[original.clone()].to_owned();
    if is_begun && text[original.end..].starts_with(']') {
        return vec![(own.start..original.end + 1, command)];
    }
    let rest = &text[original.end..];
    let spaces = rest.len() - rest.trim_start().len();
    let end = match places.get(nth + 1) {
        Some(next) => next.start,
        // A list that was written anew may have a comma after its last word.
        None if rest[spaces..].starts_with(',') => original.end + spaces + 1,
        None => original.end,
    };
    vec![(own, command), (places[1].start..end, String::new())]
}

/// The text after the changes.
pub(super) fn applied(text: &str, mut edits: Vec<TextEdit>) -> String {
    let mut text = text.to_owned();
    // From the last to the first, so that places stay.
    edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    for (place, new) in edits {
        text.replace_range(place, &new);
    }
    text
}
