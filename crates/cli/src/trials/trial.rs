//! A trial from its plan to its last run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::failure::Failure;
use crate::trials::error::file;
use crate::trials::schedule::Planned;
use crate::trials::{Plan, Record, Results, Task, run, schedule};

/// A plan with its tasks and what was recorded so far.
#[derive(Debug)]
pub(crate) struct Trial {
    plan: Plan,
    tasks: Vec<Task>,
    results: Results,
    /// A folder in which each run's files and output stay.
    keep: Option<PathBuf>,
}

impl Trial {
    /// Opens the file of results at `path`, or begins it. In a folder to `keep`, each run's files and output stay.
    ///
    /// # Errors
    ///
    /// As [`Results::open`].
    pub(crate) fn open(
        plan: Plan,
        tasks: Vec<Task>,
        path: &Path,
        keep: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let results = Results::open(path, &plan)?;
        Ok(Self {
            plan,
            tasks,
            results,
            keep,
        })
    }

    /// The plan.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// All runs so far.
    pub(crate) fn records(&self) -> &[Record] {
        self.results.records()
    }

    /// Makes all runs that are missing, in the plan's order, until `stop` is set. Calls `progress` with the number of
    /// recorded runs, before the first and after each. A run that is stopped leaves nothing, and is made again.
    ///
    /// # Errors
    ///
    /// A task, an agent or a check does not work, or the results can't be written. What was recorded stays.
    pub(crate) fn run(
        &mut self,
        stop: &AtomicBool,
        progress: impl Fn(usize),
    ) -> Result<(), Failure> {
        let made: std::collections::HashSet<Planned> =
            self.records().iter().map(Record::planned).collect();
        progress(made.len());
        for planned in schedule(&self.plan)
            .into_iter()
            .filter(|planned| !made.contains(planned))
        {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let Some(record) = self.one(planned, stop)? else {
                break;
            };
            self.results.append(record)?;
            progress(self.records().len());
        }
        Ok(())
    }

    fn one(&self, planned: Planned, stop: &AtomicBool) -> Result<Option<Record>, Failure> {
        let (task, arm) = (&self.tasks[planned.task], &self.plan.arms[planned.arm]);
        let limit = Duration::from_secs(self.plan.seconds);
        let made = |folder: &Path| run::run(task, arm, planned, limit, folder, stop);
        let Some(keep) = &self.keep else {
            let folder = tempfile::Builder::new().prefix("offcut-trial-").tempdir();
            let folder = folder.map_err(file(&std::env::temp_dir()))?;
            return made(folder.path());
        };
        let folder = keep
            .join(&task.name)
            .join(format!("{}-{}", arm.name, planned.repetition));
        // Left by a run that was not recorded.
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(file(&folder))?;
        }
        fs::create_dir_all(&folder).map_err(file(&folder))?;
        let folder = std::path::absolute(&folder).map_err(file(&folder))?;
        made(&folder)
    }
}
