//! Agents without a model that act only on what they are shown, over real commands, real files and a real store.
//!
//! An agent here is a function of the messages that it is sent, as a model is. If a command's output is not in view, it
//! follows the hint with the reader, and reads no more than it needs. What it can't find it can't use, so a lost
//! result, a wrong line number or a hint to the wrong place makes it fail. A model is cleverer in some ways and less
//! patient in others: the figures are about what is within reach and what reaching it costs, not about models.

mod agent;
mod bill;
mod peer;
mod run;
mod served;
mod step;
mod task;
mod tasks;
mod tools;
mod view;

pub use bill::Bill;
pub use peer::Peer;
pub use run::{CONTEXT, Outcome, Policy, run};
pub use served::ScriptedServer;
pub use task::{Size, Task};
pub use tasks::{all, questions};

/// The settings that are ready in the program `offcut`: name and TOML.
pub const READY: [(&str, &str); 6] = [
    (
        "recommended",
        include_str!("../../crates/cli/policies/recommended.toml"),
    ),
    (
        "cache-friendly",
        include_str!("../../crates/cli/policies/cache-friendly.toml"),
    ),
    (
        "gentle",
        include_str!("../../crates/cli/policies/gentle.toml"),
    ),
    (
        "aggressive",
        include_str!("../../crates/cli/policies/aggressive.toml"),
    ),
    ("eino", include_str!("../../crates/cli/policies/eino.toml")),
    (
        "anthropic",
        include_str!("../../crates/cli/policies/anthropic.toml"),
    ),
];
