//! Everything that is decided before the first run.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::trials::Task;
use crate::trials::statistics::{difference_found_by, runs_for};

/// The test of the main question, which is named before the first run.
pub(crate) const TEST: &str =
    "exact conditional test of solved runs, stratified by task, two-sided";

/// The difference that a trial is to find, and how surely.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Design {
    /// The difference between the shares of solved runs.
    pub(crate) difference: f64,
    /// The share that is expected to be solved without a difference. A half takes the most runs.
    pub(crate) expected: f64,
    /// The probability of finding a difference where there is none.
    pub(crate) alpha: f64,
    /// The probability of finding the difference where there is one.
    pub(crate) power: f64,
}

impl Design {
    /// Runs of each arm.
    pub(crate) fn runs(&self) -> u64 {
        runs_for(self.expected, self.difference, self.alpha, self.power)
    }

    /// Repetitions of each of `tasks` tasks, for each arm.
    pub(crate) fn repetitions(&self, tasks: usize) -> u64 {
        self.runs().div_ceil(tasks.max(1) as u64)
    }

    /// The smallest difference that `runs` of each arm find. `None` if they find none that is possible.
    pub(crate) fn found_by(&self, runs: u64) -> Option<f64> {
        difference_found_by(runs, self.expected, self.alpha, self.power)
    }

    fn checked(self) -> Result<Self, Failure> {
        let Self {
            difference,
            expected,
            alpha,
            power,
        } = self;
        let is_share = |share: f64| share > 0.0 && share < 1.0;
        let are_shares = [difference, alpha, power].into_iter().all(is_share);
        if !(are_shares && (0.0..=1.0).contains(&expected)) {
            return Err(not_a_design(
                "difference, alpha and power must be above 0 % and below 100 %",
            ));
        }
        if difference > expected.max(1.0 - expected) {
            return Err(not_a_design(format!(
                "from {:.0} % there is no room for {:.0} points",
                expected * 100.0,
                difference * 100.0
            )));
        }
        Ok(self)
    }
}

fn not_a_design(message: impl Into<String>) -> Failure {
    Failure::usage(message, "`offcut trial --help` says what a trial needs")
}

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
    /// The difference to be found.
    pub(crate) design: Design,
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

impl Plan {
    /// A plan with as many repetitions as the design takes, or with as many as are given.
    ///
    /// # Errors
    ///
    /// The design or the arms can't be those of a trial.
    pub(crate) fn new(
        design: Design,
        arms: [Arm; 2],
        tasks: Vec<Task>,
        repetitions: Option<u64>,
        seed: u64,
        seconds: u64,
    ) -> Result<Self, Failure> {
        let design = design.checked()?;
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = |arm: &Arm| !arm.name.is_empty() && arm.name.chars().all(is_letter);
        if !arms.iter().all(is_name) || arms[0].name == arms[1].name {
            return Err(not_a_design(
                "arms must have two names, of letters, digits, `-`, `_` and `.`",
            ));
        }
        if repetitions == Some(0) || seconds == 0 {
            return Err(not_a_design(
                "repetitions and the time limit must be at least 1",
            ));
        }
        Ok(Self {
            design,
            test: TEST.to_owned(),
            repetitions: repetitions.unwrap_or_else(|| design.repetitions(tasks.len())),
            seed,
            seconds,
            arms,
            tasks,
        })
    }

    /// Runs of each arm.
    pub(crate) fn runs_of_arm(&self) -> u64 {
        self.repetitions * self.tasks.len() as u64
    }

    /// Names the first field that differs between this plan and another.
    pub(crate) fn differs(&self, other: &Self) -> Option<String> {
        let [own, other] = [self, other].map(|plan| serde_json::to_value(plan).unwrap_or_default());
        let fields = own.as_object()?.iter();
        let mut differing = fields.filter(|(field, value)| other[field.as_str()] != **value);
        differing.next().map(|(field, _)| field.clone())
    }
}
