//! The needs of a turn: names, lines, values, outcomes, its own earlier words, and old texts of edits.

mod edits;
mod outcomes;
mod own;
mod values;

pub(crate) use values::{key, keys};

use crate::evidence::{Need, Read, lines_taken, names_taken};

/// The needs of each turn of a transcript, in order.
pub(crate) fn needs(read: &Read<'_>) -> Vec<Vec<Need>> {
    let mut turns = names_taken(read);
    for more in [
        lines_taken(read),
        values::of(read),
        own::of(read),
        edits::of(read),
        outcomes::of(read),
    ] {
        for (turn, more) in turns.iter_mut().zip(more) {
            turn.extend(more);
        }
    }
    turns
}
