//! The agent's own earlier words: what arguments of its calls held, and what it uses again.

use std::collections::{HashMap, HashSet};

use super::needs::{Kind, Need};
use crate::evidence::{Read, Speaker, Use, names, quotable};

/// For each turn, the names and lines that arguments of earlier calls hold, with all messages that
/// hold them.
pub(super) fn of(read: &Read) -> Vec<Vec<Need>> {
    let mut places = HashMap::<&str, Vec<usize>>::new();
    let mut argued = HashSet::new();
    let mut turns = Vec::new();
    for (at, message) in read.messages.iter().enumerate() {
        let mut here: Vec<&str> = Vec::new();
        for text in &message.written {
            here.extend(names(text).into_keys());
            here.extend(quotable(text));
        }
        here.sort_unstable();
        here.dedup();
        if message.speaker == Speaker::Assistant {
            let again = here.iter().filter(|text| argued.contains(*text));
            let need = |text: &&str| Need {
                kind: Kind::Own,
                what: Use {
                    text: (*text).to_owned(),
                    results: places.get(text).cloned().unwrap_or_default(),
                },
            };
            turns.push(again.map(need).collect());
            // The first text is the content; the others are arguments.
            for text in message.written.iter().skip(1) {
                argued.extend(names(text).into_keys());
                argued.extend(quotable(text));
            }
        }
        for text in here {
            places.entry(text).or_default().push(at);
        }
    }
    turns
}
