//! What was tried and what came of it.

use std::ops::AddAssign;

use serde_json::{Value, json};

/// At most so many problems are shown in words.
const SHOWN: usize = 20;

/// Counts of one scenario, or of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How many processes were killed.
    pub(crate) kills: u64,
    /// How many other faults were met.
    pub(crate) faults: u64,
    /// How many results the tools have returned.
    pub(crate) results: u64,
    /// How many stored contents were read and compared, those that no conversation names included.
    pub(crate) writes: u64,
    /// Results and arguments that are neither shown nor behind a hint.
    pub(crate) lost: u64,
    /// Locations that a report had named, and that hold something else.
    pub(crate) overwritten: u64,
    /// Hints that lead to nothing.
    pub(crate) dangling: u64,
    /// What can be seen in the store and is no whole original.
    pub(crate) half_written: u64,
    /// Failures that are missing in a report or in the log.
    pub(crate) hidden: u64,
    /// One line for each thing that should not be.
    pub(crate) problems: Vec<String>,
}

impl Tally {
    pub(crate) fn problem(&mut self, what: impl Into<String>) {
        if self.problems.len() < SHOWN {
            self.problems.push(what.into().replace('\n', " "));
        }
    }

    /// Whether everything that was promised holds.
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

    /// The tally of a child process, as [`to_json`](Self::to_json) wrote it.
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
