//! The tasks.

mod chain;
mod edit;
mod look_ups;
mod mend;
mod needle;
mod questions;
mod table;
mod triage;

use crate::scripted::task::{Talk, Task};

/// Name, sizes, set-up and agent of each task.
static TALKS: [(&str, [usize; 4], Talk); 7] = [
    (
        "look-ups",
        [3, 15, 45, 160],
        (look_ups::set_up, look_ups::agent),
    ),
    (
        "log triage",
        [30, 300, 3_000, 6_000],
        (triage::set_up, triage::agent),
    ),
    ("edit", [10, 200, 1_500, 3_000], (edit::set_up, edit::agent)),
    ("ids", [2, 8, 24, 70], (chain::set_up, chain::agent)),
    (
        "sums",
        [20, 300, 4_000, 16_000],
        (table::set_up, table::agent),
    ),
    ("needle", [3, 12, 50, 160], (needle::set_up, needle::agent)),
    ("mend", [20, 300, 2_000, 6_000], (mend::set_up, mend::agent)),
];

/// Questions about one result each, of about 5, 50 and 200 kB and of 5 MB.
#[must_use]
pub fn questions() -> Vec<Task> {
    let tasks = questions::ALL.iter().map(|question| Task {
        name: &question.name,
        sizes: [1, 10, 40, 1_000].map(|times| times * question.count),
        work: question,
    });
    tasks.collect()
}

/// Tasks of longer conversations.
#[must_use]
pub fn all() -> [Task; 7] {
    TALKS.each_ref().map(|(name, sizes, work)| Task {
        name,
        sizes: *sizes,
        work,
    })
}
