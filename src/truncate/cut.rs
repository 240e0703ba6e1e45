//! Texts of a result that are cut, and the hint that replaces them.

use crate::hint::Draft;

use crate::backend::Location;
use crate::session::Session;

/// Texts that are stored as one and replaced by a hint.
#[derive(Debug)]
pub(super) struct Cut {
    /// Their slots, in order. The hint takes the first; the others leave the result.
    pub(super) slots: Vec<usize>,
    /// Number of this text among the result's stored texts, counted from 1.
    pub(super) number: usize,
    /// For several texts, a line with their lengths, which is stored after them. A line feed is
    /// stored after each text.
    pub(super) manifest: Option<String>,
    pub(super) draft: Draft,
    /// Number of bytes of its hint with the longest location that it may get.
    pub(super) bytes: u64,
    /// The error of a user's preview.
    pub(super) problem: Option<String>,
}

impl Cut {
    /// The text of the hint for the location of the original, or for an original that is stored
    /// nowhere.
    pub(super) fn hint(self, session: &Session, location: Option<Location>) -> String {
        session.hint(self.draft, location).render()
    }
}
