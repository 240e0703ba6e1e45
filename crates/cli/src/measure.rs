//! The needs of a turn beside names and lines: values, outcomes, its own earlier words, and old texts of
//! edits.

mod edits;
mod needs;
mod outcomes;
mod own;
mod values;

pub(crate) use needs::{Kind, Need};
pub(crate) use values::keys;

use crate::evidence::Read;

/// The needs of each turn of a transcript, in order.
pub(crate) fn needs(read: &Read) -> Vec<Vec<Need>> {
    let mut turns = values::of(read);
    for more in [own::of(read), edits::of(read), outcomes::of(read)] {
        for (turn, more) in turns.iter_mut().zip(more) {
            turn.extend(more);
        }
    }
    turns
}
