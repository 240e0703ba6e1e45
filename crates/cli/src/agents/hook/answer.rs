//! An answered event.

use crate::agents::journal::Entry;

/// An answered event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The text for stdout; `None` if the event passes unchanged.
    pub output: Option<String>,
    /// The results in the event, for the journal.
    pub entries: Vec<Entry>,
}

impl Answer {
    /// An answer about one result.
    pub(super) fn of(output: Option<String>, entry: Entry) -> Self {
        let entries = vec![entry];
        Self { output, entries }
    }
}
