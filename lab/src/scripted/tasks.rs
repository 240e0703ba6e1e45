//! The tasks.

mod chain;
mod edit;
mod look_ups;
mod mend;
mod needle;
mod questions;
mod table;
mod triage;

use crate::scripted::task::Task;

/// Questions about one result each, of about 5, 50 and 200 kB and of 5 MB.
#[must_use]
pub fn questions() -> [Task; 20] {
    questions::ALL.each_ref().map(|question| Task {
        name: question.name,
        sizes: [1, 10, 40, 1_000].map(|times| times * question.count),
        work: question,
    })
}

/// Tasks of longer conversations.
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
