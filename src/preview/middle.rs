//! The lines that report failures in the middle of a text that is too long to be held.

use std::collections::HashSet;

use crate::preview::failures::template;
use crate::preview::plain::Plain;
use crate::preview::signs::is_failure;
use crate::preview::text::lines::Position;
use crate::preview::units::{Place, Unit, units};

/// Maximum number of lines that are kept.
const MAX_LINES: usize = 64;
/// A longer line in bytes is not looked at.
pub(crate) const MAX_LENGTH: usize = 64 * 1024;

/// The first line of each kind that reports a failure, or the piece of it that does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Middle {
    lines: Vec<(String, Place)>,
    kinds: HashSet<u64>,
}

impl Middle {
    /// Looks at the lines that `text`, which begins at `start`, has whole.
    pub(crate) fn look_at(&mut self, text: &str, start: Position) {
        let mut next = start;
        for line in text.split_inclusive('\n') {
            if self.lines.len() >= MAX_LINES {
                break;
            }
            let at = next;
            next = at.after(line.as_bytes());
            if at.byte > 0 || !line.ends_with('\n') || line.len() > MAX_LENGTH {
                continue;
            }
            let plain = Plain::of(line);
            let failing = units(&plain, at).find(|unit| unit.lines().any(is_failure));
            if let Some(Unit { text, place }) = failing
                && self.kinds.insert(template(text))
            {
                self.lines.push((text.to_owned(), place));
            }
        }
    }

    pub(crate) fn units(&self) -> impl Iterator<Item = Unit<'_>> {
        let lines = self.lines.iter();
        lines.map(|(text, place)| Unit {
            text,
            place: *place,
        })
    }
}
