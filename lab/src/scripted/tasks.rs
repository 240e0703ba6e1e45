//! The tasks.

mod chain;
mod edit;
mod look_ups;
mod mend;
mod needle;
mod table;
mod triage;

use crate::scripted::task::Task;

/// All tasks.
#[must_use]
pub fn all() -> [Task; 7] {
    [
        look_ups::TASK,
        triage::TASK,
        edit::TASK,
        chain::TASK,
        table::TASK,
        needle::TASK,
        mend::TASK,
    ]
}
