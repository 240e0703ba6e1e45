//! Everything that is decided before the first run.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::trials::Task;

/// The test of the main question, which is named before the first run.
pub(crate) const TEST: &str =
    "exact conditional test of solved runs, stratified by task, two-sided, at 5 %";

/// One of the two command lines that a trial compares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arm {
    /// A short name, such as `with`.
    pub(crate) name: String,
    /// A line for `sh -c`, run in a folder of its own, with the prompt as its stdin.
    pub(crate) command: String,
}

/// A trial as it is written into the first line of its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// Name of the test.
    pub(crate) test: String,
    /// Repetitions of each task, for each arm.
    pub(crate) repetitions: u64,
    /// Seed of the order of runs.
    pub(crate) seed: u64,
    /// Limit of an agent's run, in seconds.
    pub(crate) seconds: u64,
    /// The first arm, which the second is compared with.
    pub(crate) arms: [Arm; 2],
    /// The tasks, by name.
    pub(crate) tasks: Vec<Task>,
}

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Planned {
    /// Index of the task.
    pub(crate) task: usize,
    /// Index of the arm.
    pub(crate) arm: usize,
    /// The repetition, from 0.
    pub(crate) repetition: u64,
}

impl Plan {
    /// Refuses what can't be a trial.
    pub(crate) fn checked(self) -> Result<Self, Failure> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = |arm: &Arm| !arm.name.is_empty() && arm.name.chars().all(is_letter);
        let [first, second] = &self.arms;
        let problem = if !(is_name(first) && is_name(second)) || first.name == second.name {
            "arms must have two names, of letters, digits, `-`, `_` and `.`"
        } else if self.repetitions == 0 || self.seconds == 0 {
            "repetitions and the time limit must be at least 1"
        } else {
            return Ok(self);
        };
        let help = "`offcut trial --help` says what a trial needs";
        Err(Failure::usage(problem, help))
    }

    /// Runs of each arm.
    pub(crate) fn runs_of_arm(&self) -> u64 {
        self.repetitions * self.tasks.len() as u64
    }

    /// Returns true if `run` is one of the plan.
    pub(crate) fn has(&self, run: &Planned) -> bool {
        run.task < self.tasks.len() && run.arm < 2 && run.repetition < self.repetitions
    }

    /// Names the first field that differs between this plan and another.
    pub(crate) fn differs(&self, other: &Self) -> Option<String> {
        let [own, other] = [self, other].map(|plan| serde_json::to_value(plan).unwrap_or_default());
        let fields = own.as_object()?.iter();
        let mut differing = fields.filter(|(field, value)| other[field.as_str()] != **value);
        differing.next().map(|(field, _)| field.clone())
    }
}
