//! Agents without a model that act only on what they are shown, over real commands, real files and a real store.
//!
//! An agent here is a function of the messages that it is sent, as a model is. If a command's output is not in view, it
//! follows the hint with the reader, and reads no more than it needs. What it can't find it can't use, so a lost
//! result, a wrong line number or a hint to the wrong place makes it fail. A model is cleverer in some ways and less
//! patient in others: the figures are about what is within reach and what reaching it costs, not about models.

mod bill;
mod peer;
mod run;
mod step;
mod task;
mod tasks;
mod tools;
mod view;

pub use bill::Bill;
pub use peer::{Editor, Peer};
pub use run::{CONTEXT, Outcome, Policy, run};
pub use task::{SIZES, Task};
pub use tasks::TASKS;
