//! The arguments of `trial`.

use std::path::PathBuf;
use std::time::Duration;

use crate::units;

/// Compare two command lines of your agent over your own tasks: which solves more, at what price.
///
/// Each task is run many times under two command lines, in an order that a seed decides. Without
/// --results, only says how many runs it takes to find a difference, and by which test. With
/// --results, makes these runs, and continues where it was stopped or killed. The test is applied
/// once, when all runs are made.
///
/// A task is a folder with a `prompt.md`, which is the agent's stdin, and an executable `check`, which
/// exits with 0 if the task is solved. The run's folder begins with a copy of the task's `files/`, and
/// with what its executable `setup` makes of it, if it has them.
#[derive(Debug, clap::Args)]
pub(crate) struct Trial {
    /// The folder of tasks.
    #[arg(value_name = "TASKS")]
    pub(crate) tasks: PathBuf,
    /// A name and a line for `sh -c`, such as `with=offcut wrap claude-code -p`. Exactly two; the
    /// second is compared with the first.
    #[arg(long = "arm", value_name = "NAME=COMMAND", required = true, value_parser = arm)]
    pub(crate) arms: Vec<(String, String)>,
    /// The difference to find, in percentage points of solved runs.
    #[arg(long, value_name = "POINTS", default_value_t = 5.0)]
    pub(crate) difference: f64,
    /// The percentage of runs that is expected to be solved without a difference. 50 takes the most
    /// runs.
    #[arg(long, value_name = "PERCENT", default_value_t = 50.0)]
    pub(crate) expected: f64,
    /// The probability in percent of finding a difference where there is none.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub(crate) alpha: f64,
    /// The probability in percent of finding the difference where there is one.
    #[arg(long, value_name = "PERCENT", default_value_t = 80.0)]
    pub(crate) power: f64,
    /// Repetitions of each task for each arm, instead of as many as the difference takes.
    #[arg(long, value_name = "N")]
    pub(crate) repetitions: Option<u64>,
    /// The seed of the order of runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The time after which an agent's run is ended. Its check decides all the same.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "30m")]
    pub(crate) time_limit: Duration,
    /// Prices of a million tokens, from which money is computed: a TOML or JSON file with `fresh`,
    /// `cached`, `written`, `output`, `currency`, `source` and `date`.
    #[arg(long, value_name = "CARD")]
    pub(crate) prices: Option<String>,
    /// Run the trial, and append each run to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) results: Option<PathBuf>,
    /// Write a page about the trial to a file, in Markdown.
    #[arg(long, value_name = "FILE", requires = "results")]
    pub(crate) report: Option<PathBuf>,
    /// Keep the files and the output of each run in this folder.
    #[arg(long, value_name = "FOLDER", requires = "results")]
    pub(crate) keep: Option<PathBuf>,
}

fn arm(text: &str) -> Result<(String, String), String> {
    let (name, command) = text
        .split_once('=')
        .filter(|(name, command)| !name.is_empty() && !command.trim().is_empty())
        .ok_or("write NAME=COMMAND")?;
    Ok((name.to_owned(), command.to_owned()))
}
