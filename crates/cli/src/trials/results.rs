//! The file of results: the plan, then a line for each run, appended and never changed.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, OrFail as _};
use crate::trials::plan::Planned;
use crate::trials::{Plan, Usage, file};

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Its place in the plan.
    #[serde(flatten)]
    pub(crate) run: Planned,
    /// The check exited with 0.
    pub(crate) solved: bool,
    /// Seconds that the agent took.
    pub(crate) seconds: f64,
    /// The agent's exit code; none if it was ended.
    pub(crate) exit: Option<i32>,
    /// The agent was ended because it took too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) over_time: bool,
    /// Tokens as the provider has counted them, if the run left any count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Plan(Plan),
    Run(Record),
}

/// An open file of results, which only this process writes to.
#[derive(Debug)]
pub(crate) struct Results {
    path: PathBuf,
    file: File,
    /// All runs so far, in the order in which they were made.
    pub(crate) records: Vec<Record>,
}

impl Results {
    /// Opens the results of `plan`, or begins them. A last line that was not written to its end is cut off: its run
    /// is made again.
    ///
    /// # Errors
    ///
    /// The file can't be read or written, another process writes to it, or it holds anything but runs of this plan.
    pub(crate) fn open(path: &Path, plan: &Plan) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        // Arms' commands and what runs cost concern nobody else.
        options.mode(0o600);
        let mut opened = options.open(path).map_err(file(path))?;
        opened.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::new("another process is running this trial")
                .hint("wait for its end, or name another file of results"),
            TryLockError::Error(error) => file(path)(error),
        })?;
        let mut text = Vec::new();
        opened.read_to_end(&mut text).map_err(file(path))?;
        let end = text.iter().rposition(|byte| *byte == b'\n');
        let whole = end.map_or(0, |end| end + 1);
        let records = read(&text[..whole], plan)?;
        if whole < text.len() {
            opened.set_len(whole as u64).map_err(file(path))?;
            opened.seek(SeekFrom::End(0)).map_err(file(path))?;
        }
        let mut results = Self {
            path: path.to_owned(),
            file: opened,
            records,
        };
        if whole == 0 {
            results.write(&Line::Plan(plan.clone()))?;
        }
        Ok(results)
    }

    /// Appends a run. When this returns, it is on the disk.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub(crate) fn append(&mut self, record: Record) -> Result<(), Failure> {
        self.write(&Line::Run(record.clone()))?;
        self.records.push(record);
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<(), Failure> {
        let mut write = || {
            let line = serde_json::to_string(line)? + "\n";
            self.file.write_all(line.as_bytes())?;
            self.file.sync_data()
        };
        write().map_err(file(&self.path))
    }
}

fn read(text: &[u8], plan: &Plan) -> Result<Vec<Record>, Failure> {
    let mut records: Vec<Record> = Vec::new();
    let mut seen = HashSet::new();
    for (at, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let unreadable = format!("line {} of the results can't be read", at + 1);
        let remedy = "restore the file from a copy, or name another file of results";
        let line: Line = serde_json::from_slice(line).or_refuse(&unreadable, remedy)?;
        match line {
            Line::Plan(written) if at == 0 => {
                if let Some(what) = plan.differs(&written) {
                    return Err(Failure::usage(
                        format!("the results are of another trial: `{what}` differs in its plan"),
                        "a trial goes on as it was planned: give the same tasks, arms and options, or name another file of results",
                    ));
                }
            }
            Line::Run(record) if at > 0 && plan.has(&record.run) && seen.insert(record.run) => {
                records.push(record);
            }
            Line::Plan(_) | Line::Run(_) => {
                let why = "the first line must be the plan, and all others its runs, each once";
                return Err(Failure::usage(format!("{unreadable}: {why}"), remedy));
            }
        }
    }
    Ok(records)
}
