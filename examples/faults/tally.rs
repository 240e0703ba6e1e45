//! Counts of attempts and of their outcomes.

use std::ops::AddAssign;

use serde_json::{Value, json};

/// Upper bound on the problems that are described.
const SHOWN: usize = 20;

/// Counts of one scenario, or of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Number of killed processes.
    pub(crate) kills: u64,
    /// Number of other faults met.
    pub(crate) faults: u64,
    /// Number of results that the tools returned.
    pub(crate) results: u64,
    /// Number of stored contents that were read and compared, even if no conversation names them.
    pub(crate) writes: u64,
    /// Results and arguments that are neither shown nor stored where a hint says.
    pub(crate) lost: u64,
    /// Locations in a report that now hold something else.
    pub(crate) overwritten: u64,
    /// Hints at locations that hold nothing.
    pub(crate) dangling: u64,
    /// Visible contents of the store that are not whole originals.
    pub(crate) half_written: u64,
    /// Failures missing from a report or from the log.
    pub(crate) hidden: u64,
    /// One line for each problem.
    pub(crate) problems: Vec<String>,
}

impl Tally {
    pub(crate) fn problem(&mut self, what: impl Into<String>) {
        if self.problems.len() < SHOWN {
            self.problems.push(what.into().replace('\n', " "));
        }
    }

    /// Tells whether every promise holds.
    pub(crate) fn holds(&self) -> bool {
        let Self {
            lost,
            overwritten,
            dangling,
            half_written,
            hidden,
            problems,
            ..
        } = self;
        [lost, overwritten, dangling, half_written, hidden]
            .iter()
            .all(|count| **count == 0)
            && problems.is_empty()
    }

    pub(crate) fn to_json(&self) -> Value {
        let Self {
            kills,
            faults,
            results,
            writes,
            lost,
            overwritten,
            dangling,
            half_written,
            hidden,
            problems,
        } = self;
        json!({
            "kills": kills,
            "faults": faults,
            "results": results,
            "writes": writes,
            "lost": lost,
            "overwritten": overwritten,
            "dangling": dangling,
            "half_written": half_written,
            "hidden": hidden,
            "problems": problems,
        })
    }

    /// Reads the tally of a child process, written by [`to_json`](Self::to_json).
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let count = |name: &str| value[name].as_u64();
        let problems = value["problems"]
            .as_array()?
            .iter()
            .filter_map(|line| Some(line.as_str()?.to_owned()));
        Some(Self {
            kills: count("kills")?,
            faults: count("faults")?,
            results: count("results")?,
            writes: count("writes")?,
            lost: count("lost")?,
            overwritten: count("overwritten")?,
            dangling: count("dangling")?,
            half_written: count("half_written")?,
            hidden: count("hidden")?,
            problems: problems.collect(),
        })
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        let Self {
            kills,
            faults,
            results,
            writes,
            lost,
            overwritten,
            dangling,
            half_written,
            hidden,
            problems,
        } = other;
        self.kills += kills;
        self.faults += faults;
        self.results += results;
        self.writes += writes;
        self.lost += lost;
        self.overwritten += overwritten;
        self.dangling += dangling;
        self.half_written += half_written;
        self.hidden += hidden;
        problems
            .into_iter()
            .for_each(|problem| self.problem(problem));
    }
}
