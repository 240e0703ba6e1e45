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
pub const TASKS: [Task; 7] = [
    Task {
        name: "look-ups",
        sizes: [3, 15, 45, 160],
        set_up: look_ups::set_up,
        agent: look_ups::agent,
    },
    Task {
        name: "log triage",
        sizes: [30, 300, 3_000, 6_000],
        set_up: triage::set_up,
        agent: triage::agent,
    },
    Task {
        name: "edit",
        sizes: [10, 200, 1_500, 3_000],
        set_up: edit::set_up,
        agent: edit::agent,
    },
    Task {
        name: "ids",
        sizes: [2, 8, 24, 70],
        set_up: chain::set_up,
        agent: chain::agent,
    },
    Task {
        name: "sums",
        sizes: [20, 300, 4_000, 16_000],
        set_up: table::set_up,
        agent: table::agent,
    },
    Task {
        name: "needle",
        sizes: [3, 12, 50, 160],
        set_up: needle::set_up,
        agent: needle::agent,
    },
    Task {
        name: "mend",
        sizes: [20, 300, 2_000, 6_000],
        set_up: mend::set_up,
        agent: mend::agent,
    },
];
