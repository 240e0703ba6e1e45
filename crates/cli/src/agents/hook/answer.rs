//! An answered event.

use crate::agents::journal::Row;

/// An answered event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text for stdout; `None` if the event passes unchanged.
    pub output: Option<String>,
    /// The results in the event, for the journal.
    pub rows: Vec<Row>,
}
