//! The needs of a turn: names, lines, values, outcomes, its own earlier words, and old texts of edits.

mod edits;
mod outcomes;
mod values;

use std::collections::{HashMap, HashSet};

pub(crate) use values::{key, keys};

use crate::evidence::{Kind, Need, Read, lines_taken, names, names_taken, quotable};

/// The needs of each turn of a transcript, in order.
pub(crate) fn needs(read: &Read<'_>) -> Vec<Vec<Need>> {
    let mut turns = names_taken(read);
    for more in [
        lines_taken(read),
        values::of(read),
        own(read),
        edits::of(read),
        outcomes::of(read),
    ] {
        for (turn, more) in turns.iter_mut().zip(more) {
            turn.extend(more);
        }
    }
    turns
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
