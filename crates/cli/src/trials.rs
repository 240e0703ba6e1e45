//! Trials of agents: the same tasks under two command lines, many times, and the test that tells them apart.
//!
//! A [`Design`] says which difference is to be found, and from it follows the number of runs. A [`Plan`] holds
//! everything that is decided before the first run, the test included. [`Trial::run`] carries it out and appends
//! each run to a file, so that a trial that was killed can go on. An [`Analysis`] applies the test, once, when all
//! runs are done.
//!
//! ```
//! use offcut_cli::trials::Design;
//!
//! let design = Design::default(); // 5 points, at 5 %, with 80 % power, where half of all runs solve their task
//! assert_eq!(design.runs(), 1_605);
//! assert_eq!(design.repetitions(20), 81);
//! ```

mod analysis;
mod error;
mod plan;
mod prices;
mod process;
mod random;
mod report;
mod results;
mod run;
mod schedule;
pub mod statistics;
mod tasks;
mod trial;
mod usage;

pub use analysis::{Analysis, ArmFigures, Compared, Means, PerSolved, TaskFigures, Verdict};
pub use error::Error;
pub use plan::{Arm, Design, Plan, PlannedTask, TEST};
pub use prices::Prices;
pub use random::Random;
pub use report::{markdown, plan_text};
pub use results::{Record, Results};
pub use schedule::{Planned, schedule};
pub use tasks::{Task, tasks};
pub use trial::Trial;
pub use usage::Usage;
