//! A trial from its plan to its last run. A run is a folder, the agent, the check.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::trials::process::{self, ProcessEnd};
use crate::trials::schedule::{Planned, schedule};
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
    if let Some(files) = task.files() {
        tasks::copy(&files, &work)?;
    }
    let usage = folder.join("usage.jsonl");
    let prepared = |mut command: Command, name: &str| -> Result<Command, Failure> {
        let output = |kind: &str| {
            let path = folder.join(format!("{name}.{kind}"));
            File::create(&path).map_err(file(&path))
        };
        command
            .current_dir(&work)
            .env("OFFCUT_TRIAL_TASK", &task.name)
            .env("OFFCUT_TRIAL_ARM", &arm.name)
            .env("OFFCUT_TRIAL_REPETITION", planned.repetition.to_string())
            .env("OFFCUT_TRIAL_PROMPT", task.prompt())
            .env("OFFCUT_TRIAL_FOLDER", folder)
            .env("OFFCUT_TRIAL_USAGE", &usage)
            .stdin(Stdio::null())
            .stdout(output("out")?)
            .stderr(output("err")?);
        Ok(command)
    };
    // The end of a setup or a check; `None` if it was stopped.
    let ended = |program: &Path, name: &str| -> Result<Option<ExitStatus>, Failure> {
        match process::run(&mut prepared(Command::new(program), name)?, OWN_LIMIT, stop) {
            Ok(ProcessEnd::Exit(status)) => Ok(Some(status)),
            Ok(ProcessEnd::Stopped) => Ok(None),
            Ok(ProcessEnd::OverTime) => Err(failed(format!("its {name} does not end"))),
            Err(error) => Err(failed(format!("its {name} does not start: {error}"))),
        }
    };
    if let Some(setup) = task.setup() {
        match ended(&setup, "setup")? {
            None => return Ok(None),
            Some(status) if status.success() => {}
            Some(status) => return Err(failed(format!("its setup ended with {status}"))),
        }
    }
    let mut agent = Command::new("sh");
    agent.args(["-c", &arm.command]);
    let mut agent = prepared(agent, "agent")?;
    agent.stdin(File::open(task.prompt()).map_err(file(&task.prompt()))?);
    let began = Instant::now();
    let (exit, over_time) = match process::run(&mut agent, Duration::from_secs(plan.seconds), stop)
    {
        Ok(ProcessEnd::Exit(status)) if matches!(status.code(), Some(NOT_FOUND | NOT_RUN)) => {
            let said = last_line(&folder.join("agent.err"));
            return Err(failed(format!("the agent does not start: {said}")));
        }
        Ok(ProcessEnd::Exit(status)) => (status.code(), false),
        Ok(ProcessEnd::OverTime) => (None, true),
        Ok(ProcessEnd::Stopped) => return Ok(None),
        Err(error) => return Err(failed(format!("the agent does not start: {error}"))),
    };
    let seconds = (began.elapsed().as_secs_f64() * 1e3).round() / 1e3;
    let Some(check) = ended(&task.check(), "check")? else {
        return Ok(None);
    };
    if check.code().is_none() {
        return Err(failed(format!("its check ended with {check}")));
    }
    Ok(Some(Record {
        task: planned.task,
        arm: planned.arm,
        repetition: planned.repetition,
        solved: check.success(),
        seconds,
        exit,
        over_time,
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
