//! Errors of trials.

use std::io;
use std::path::{Path, PathBuf};

/// Something that stops a trial. Runs that are recorded stay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder can't be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A folder of tasks has none, or one that lacks something.
    #[error("{0}")]
    Tasks(String),
    /// The design or the arms can't be those of a trial.
    #[error("{0}")]
    Design(String),
    /// The file of results belongs to a trial that was planned otherwise.
    #[error("the results are of another trial: {0}")]
    OtherPlan(String),
    /// The file of results has a line that is not a run of this plan.
    #[error("line {line} of the results can't be read: {why}")]
    Damaged {
        /// The line, from 1.
        line: usize,
        /// The cause.
        why: String,
    },
    /// Another process writes to the same file of results.
    #[error("another process is running this trial")]
    InUse,
    /// A command of a task or an arm did not do its part, so nothing is known about the run.
    #[error("{task} under {arm}: {why}")]
    Run {
        /// The task.
        task: String,
        /// The arm.
        arm: String,
        /// Description of what happened.
        why: String,
    },
    /// The prices can't be used.
    #[error("{0}")]
    Prices(String),
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// One sentence about what to do.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Io { .. } => {
                "nothing that was recorded is lost; run the command again when the cause is gone"
            }
            Self::Tasks(_) => {
                "a task is a folder with a `prompt.md` and an executable `check` that exits with 0 if the task is solved"
            }
            Self::Design(_) => "`offcut trial --help` says what a trial needs",
            Self::OtherPlan(_) => {
                "a trial goes on as it was planned: give the same tasks, arms and options, or name another file of results"
            }
            Self::Damaged { .. } => "restore the file from a copy, or name another file of results",
            Self::InUse => "wait for its end, or name another file of results",
            Self::Run { .. } => {
                "the run is not recorded; run the same command again when the cause is gone, and the trial goes on from here"
            }
            Self::Prices(_) => {
                "a card has the prices of a million tokens, `input`, `cached`, `written` and `output`, with `currency`, `source` and `date`"
            }
        }
    }
}
