//! Trials of agents: the same tasks under two command lines, many times, and the test that tells them apart.
//!
//! A `Design` says which difference is to be found, and from it follows the number of runs. A `Plan` holds
//! everything that is decided before the first run, the test included. `Trial::run` carries it out and appends
//! each run to a file, so that a trial that was killed can go on. An `Analysis` applies the test, once, when all
//! runs are done.

mod analysis;
mod error;
mod plan;
mod process;
#[cfg(test)]
mod promise_tests;
mod random;
mod report;
mod results;
mod run;
mod schedule;
mod statistics;
mod tasks;
mod trial;
mod usage;

pub(crate) use analysis::{Analysis, ArmFigures, Verdict};
pub(crate) use plan::{Arm, Design, Plan};
pub use random::Random;
pub(crate) use report::{markdown, plan_text};
pub(crate) use results::{Record, Results};
pub(crate) use schedule::schedule;
pub(crate) use tasks::{Task, tasks};
pub(crate) use trial::Trial;
pub(crate) use usage::Usage;
