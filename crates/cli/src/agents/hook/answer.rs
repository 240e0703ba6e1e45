//! An answered event.

use serde_json::Value;

use crate::agents::journal::Row;

/// An answered event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text for stdout; `None` if the event passes unchanged.
    pub output: Option<String>,
    /// The results in the event, for the journal.
    pub rows: Vec<Row>,
}

impl Answer {
    /// An answer about one result.
    pub(super) fn of(output: Option<Value>, row: Row) -> Self {
        Self {
            output: output.map(|output| output.to_string()),
            rows: vec![row],
        }
    }
}
