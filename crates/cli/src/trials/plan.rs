//! Everything that is decided before the first run.

use serde::{Deserialize, Serialize};

use crate::trials::statistics::{difference_found_by, runs_for};
use crate::trials::{Error, Task};

/// The test of the main question, which is named before the first run.
pub const TEST: &str = "exact conditional test of solved runs, stratified by task, two-sided";

/// The difference that a trial is to find, and how surely.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    /// The difference between the shares of solved runs.
    pub difference: f64,
    /// The share that is expected to be solved without a difference. A half takes the most runs.
    pub expected: f64,
    /// The probability of finding a difference where there is none.
    pub alpha: f64,
    /// The probability of finding the difference where there is one.
    pub power: f64,
}

impl Default for Design {
    /// # Default
    ///
    /// - `difference`: 0.05
    /// - `expected`: 0.5
    /// - `alpha`: 0.05
    /// - `power`: 0.8
    fn default() -> Self {
        Self {
            difference: 0.05,
            expected: 0.5,
            alpha: 0.05,
            power: 0.8,
        }
    }
}

impl Design {
    /// Runs of each arm.
    #[must_use]
    pub fn runs(&self) -> u64 {
        runs_for(self.expected, self.difference, self.alpha, self.power)
    }

    /// Repetitions of each of `tasks` tasks, for each arm.
    #[must_use]
    pub fn repetitions(&self, tasks: usize) -> u64 {
        self.runs().div_ceil(tasks.max(1) as u64)
    }

    /// The smallest difference that `runs` of each arm find. `None` if they find none that is possible.
    #[must_use]
    pub fn found_by(&self, runs: u64) -> Option<f64> {
        difference_found_by(runs, self.expected, self.alpha, self.power)
    }

    fn checked(self) -> Result<Self, Error> {
        let Self {
            difference,
            expected,
            alpha,
            power,
        } = self;
        let is_share = |share: f64| share > 0.0 && share < 1.0;
        if !(is_share(difference)
            && is_share(alpha)
            && is_share(power)
            && (0.0..=1.0).contains(&expected))
        {
            return Err(Error::Design(
                "difference, alpha and power must be above 0 % and below 100 %".to_owned(),
            ));
        }
        if difference > expected.max(1.0 - expected) {
            return Err(Error::Design(format!(
                "from {:.0} % there is no room for {:.0} points",
                expected * 100.0,
                difference * 100.0
            )));
        }
        Ok(self)
    }
}

/// One of the two command lines that a trial compares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// A short name, such as `with`.
    pub name: String,
    /// A line for `sh -c`, run in a folder of its own, with the prompt as its stdin.
    pub command: String,
}

/// A task as a plan names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTask {
    /// Name of the task.
    pub name: String,
    /// Digest of its folder.
    pub digest: String,
}

/// A trial as it is written into the first line of its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The difference to be found.
    pub design: Design,
    /// Name of the test.
    pub test: String,
    /// Repetitions of each task, for each arm.
    pub repetitions: u64,
    /// Seed of the order of runs, and of resampling.
    pub seed: u64,
    /// Limit of an agent's run, in seconds.
    pub seconds: u64,
    /// The first arm, which the second is compared with.
    pub arms: [Arm; 2],
    /// The tasks, by name.
    pub tasks: Vec<PlannedTask>,
}

impl Plan {
    /// A plan with as many repetitions as the design takes, or with as many as are given.
    ///
    /// # Errors
    ///
    /// The design or the arms can't be those of a trial.
    pub fn new(
        design: Design,
        arms: [Arm; 2],
        tasks: &[Task],
        repetitions: Option<u64>,
        seed: u64,
        seconds: u64,
    ) -> Result<Self, Error> {
        let design = design.checked()?;
        let is_name = |arm: &Arm| {
            !arm.name.is_empty()
                && arm
                    .name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if !arms.iter().all(is_name) || arms[0].name == arms[1].name {
            return Err(Error::Design(
                "arms must have two names, of letters, digits, `-`, `_` and `.`".to_owned(),
            ));
        }
        if repetitions == Some(0) || seconds == 0 {
            return Err(Error::Design(
                "repetitions and the time limit must be at least 1".to_owned(),
            ));
        }
        Ok(Self {
            design,
            test: TEST.to_owned(),
            repetitions: repetitions.unwrap_or_else(|| design.repetitions(tasks.len())),
            seed,
            seconds,
            arms,
            tasks: tasks
                .iter()
                .map(|task| PlannedTask {
                    name: task.name.clone(),
                    digest: task.digest.clone(),
                })
                .collect(),
        })
    }

    /// Runs of each arm.
    #[must_use]
    pub fn runs_of_arm(&self) -> u64 {
        self.repetitions * self.tasks.len() as u64
    }

    /// Names what differs between this plan and another.
    pub(crate) fn differs(&self, other: &Self) -> Option<&'static str> {
        // Exhaustive, so that a new field does not compile until it is compared here.
        let Self {
            design,
            test,
            repetitions,
            seed,
            seconds,
            arms,
            tasks,
        } = other;
        let same = [
            (self.design == *design, "the design"),
            (self.test == *test, "the test"),
            (
                self.repetitions == *repetitions,
                "the number of repetitions",
            ),
            (self.seed == *seed, "the seed"),
            (self.seconds == *seconds, "the time limit"),
            (self.arms == *arms, "the arms"),
            (self.tasks == *tasks, "the tasks"),
        ];
        same.into_iter()
            .find(|(same, _)| !same)
            .map(|(_, what)| what)
    }
}
