//! An answered event.

use crate::agents::journal::Row;

/// An answered event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The text for stdout; `None` if the event passes unchanged.
    pub output: Option<String>,
    /// The results in the event, for the journal.
    pub rows: Vec<Row>,
}

impl Answer {
    /// An answer about one result.
    pub(super) fn of(output: Option<String>, row: Row) -> Self {
        let rows = vec![row];
        Self { output, rows }
    }
}
