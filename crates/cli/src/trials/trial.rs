//! A trial from its plan to its last run.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::trials::error::file;
use crate::trials::schedule::Planned;
use crate::trials::{Plan, Record, Results, run, schedule};

/// A plan with its tasks and what was recorded so far.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) plan: Plan,
    pub(crate) results: Results,
    /// A folder in which each run's files and output stay.
    pub(crate) keep: Option<PathBuf>,
}

impl Trial {
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
        let made = self.results.records.iter().map(Record::planned);
        let made: HashSet<Planned> = made.collect();
        progress(made.len());
        let missing = schedule(&self.plan).into_iter();
        for planned in missing.filter(|planned| !made.contains(planned)) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let Some(record) = self.one(planned, stop)? else {
                break;
            };
            self.results.append(record)?;
            progress(self.results.records.len());
        }
        Ok(())
    }

    fn one(&self, planned: Planned, stop: &AtomicBool) -> Result<Option<Record>, Failure> {
        let made = |folder: &Path| run::run(&self.plan, planned, folder, stop);
        let Some(keep) = &self.keep else {
            let folder = tempfile::Builder::new().prefix("offcut-trial-").tempdir();
            let folder = folder.map_err(file(&std::env::temp_dir()))?;
            return made(folder.path());
        };
        let arm = &self.plan.arms[planned.arm].name;
        let folder = keep.join(&self.plan.tasks[planned.task].name);
        let folder = folder.join(format!("{arm}-{}", planned.repetition));
        // Left by a run that was not recorded.
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(file(&folder))?;
        }
        fs::create_dir_all(&folder).map_err(file(&folder))?;
        let folder = std::path::absolute(&folder).map_err(file(&folder))?;
        made(&folder)
    }
}
