//! Trials of agents: the same tasks under two command lines, many times, and the test that tells them apart.
//!
//! A `Plan` holds everything that is decided before the first run. `Trial::run` carries it out and appends each run to a
//! file, so that a trial that was killed can go on. An `Analysis` applies the test, once, when all runs are done.

mod analysis;
mod plan;
mod process;
#[cfg(test)]
mod promise_tests;
mod report;
mod results;
mod run;
mod schedule;
mod statistics;
mod tasks;
mod usage;

use std::io;
use std::path::Path;

use crate::failure::Failure;
pub(crate) use analysis::{Analysis, Verdict};
pub(crate) use plan::{Arm, Plan, TEST};
pub(crate) use report::{markdown, plan_text};
pub(crate) use results::{Record, Results};
pub(crate) use run::Trial;
pub use schedule::Random;
pub(crate) use tasks::{Task, tasks};
use usage::Usage;

/// A file or folder that can't be read or written.
fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    |error| {
        Failure::new(format!("{}: {error}", path.display()))
            .hint("nothing that was recorded is lost; run the command again when the cause is gone")
    }
}
