//! A trial from its plan to its last run. A run is a folder, the agent, the check.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::trials::plan::Planned;
use crate::trials::process::{self, ProcessEnd};
use crate::trials::schedule::schedule;
use crate::trials::{Plan, Record, Results, Usage, file, tasks};

/// Limit of a setup or a check.
const OWN_LIMIT: Duration = Duration::from_secs(3_600);
/// Exit codes by which `sh` says that it could not start a command.
const NOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

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
        let made = self.results.records.iter().map(|record| record.run);
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
        let made = |folder: &Path| run(&self.plan, planned, folder, stop);
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

/// Makes one run in `folder`, which is empty. Returns `None` if it was stopped.
fn run(
    plan: &Plan,
    planned: Planned,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Option<Record>, Failure> {
    let (task, arm) = (&plan.tasks[planned.task], &plan.arms[planned.arm]);
    let failed = |why: String| {
        Failure::new(format!("{} under {}: {why}", task.name, arm.name)).hint(
            "the run is not recorded; run the same command again when the cause is gone, and the trial goes on from here",
        )
    };
    let work = folder.join("work");
    fs::create_dir(&work).map_err(file(&work))?;
    if task.at("files").is_dir() {
        tasks::copy(&task.at("files"), &work).map_err(file(&work))?;
    }
    let (prompt, usage) = (task.at("prompt.md"), folder.join("usage.jsonl"));
    let ran = |mut command: Command, name: &str, limit: Duration| {
        let output = |kind: &str| File::create(folder.join(format!("{name}.{kind}")));
        let mut run = || {
            command
                .current_dir(&work)
                .env("OFFCUT_TRIAL_TASK", &task.name)
                .env("OFFCUT_TRIAL_ARM", &arm.name)
                .env("OFFCUT_TRIAL_REPETITION", planned.repetition.to_string())
                .env("OFFCUT_TRIAL_PROMPT", &prompt)
                .env("OFFCUT_TRIAL_FOLDER", folder)
                .env("OFFCUT_TRIAL_USAGE", &usage)
                .stdin(match name {
                    "agent" => Stdio::from(File::open(&prompt)?),
                    _ => Stdio::null(),
                })
                .stdout(output("out")?)
                .stderr(output("err")?);
            process::run(&mut command, limit, stop)
        };
        run().map_err(|error| failed(format!("the {name} does not start: {error}")))
    };
    // The end of a setup or a check; `None` if it was stopped.
    let ended = |name: &str| match ran(Command::new(task.at(name)), name, OWN_LIMIT)? {
        ProcessEnd::Exit(status) => Ok(Some(status)),
        ProcessEnd::Stopped => Ok(None),
        ProcessEnd::OverTime => Err(failed(format!("its {name} does not end"))),
    };
    if task.at("setup").is_file() {
        match ended("setup")? {
            None => return Ok(None),
            Some(status) if status.success() => {}
            Some(status) => {
                let said = last_line(&folder.join("setup.err"));
                return Err(failed(format!("its setup ended with {status}: {said}")));
            }
        }
    }
    let mut agent = Command::new("sh");
    agent.args(["-c", &arm.command]);
    let began = Instant::now();
    let end = ran(agent, "agent", Duration::from_secs(plan.seconds))?;
    let seconds = (began.elapsed().as_secs_f64() * 1e3).round() / 1e3;
    let exit = match end {
        ProcessEnd::Exit(status) => status.code(),
        ProcessEnd::OverTime => None,
        ProcessEnd::Stopped => return Ok(None),
    };
    if matches!(exit, Some(NOT_FOUND | NOT_RUN)) {
        let said = last_line(&folder.join("agent.err"));
        return Err(failed(format!("the agent does not start: {said}")));
    }
    let Some(check) = ended("check")? else {
        return Ok(None);
    };
    if check.code().is_none() {
        return Err(failed(format!("its check ended with {check}")));
    }
    Ok(Some(Record {
        run: planned,
        solved: check.success(),
        seconds,
        exit,
        over_time: matches!(end, ProcessEnd::OverTime),
        usage: Usage::of_run(&text(&usage), &text(&folder.join("agent.out"))),
    }))
}

/// The text of a file; empty if there is none.
fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// The last line of a file, without control characters.
fn last_line(path: &Path) -> String {
    let text = text(path);
    let line = text.lines().last().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}
