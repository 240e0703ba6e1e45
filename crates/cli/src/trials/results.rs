//! The file of results: the plan, then a line for each run, appended and never changed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::trials::schedule::Planned;
use crate::trials::{Error, Plan, Usage};

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Index of the task in the plan.
    pub task: usize,
    /// Index of the arm.
    pub arm: usize,
    /// The repetition, from 0.
    pub repetition: u64,
    /// The check exited with 0.
    pub solved: bool,
    /// Seconds that the agent took.
    pub seconds: f64,
    /// The agent's exit code; none if it was ended.
    pub exit: Option<i32>,
    /// The agent was ended because it took too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_time: bool,
    /// Tokens as the provider has counted them, if the run left any count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Record {
    /// The place of the run in the plan.
    #[must_use]
    pub fn planned(&self) -> Planned {
        Planned {
            task: self.task,
            arm: self.arm,
            repetition: self.repetition,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Plan(Plan),
    Run(Record),
}

/// An open file of results, which only this process writes to.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: File,
    /// All runs so far.
    records: Vec<Record>,
}

impl Results {
    /// Opens the results of `plan`, or begins them. A last line that was not written to its end is cut off: its run
    /// is made again.
    ///
    /// # Errors
    ///
    /// The file can't be read or written, another process writes to it, or it holds anything but runs of this plan.
    pub fn open(path: &Path, plan: &Plan) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        // Arms' commands and what runs cost concern nobody else.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(Error::io(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse),
            Err(TryLockError::Error(error)) => return Err(Error::io(path)(error)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(Error::io(path))?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let records = read(&text[..whole], plan)?;
        if whole < text.len() {
            file.set_len(whole as u64).map_err(Error::io(path))?;
            file.seek(SeekFrom::End(0)).map_err(Error::io(path))?;
        }
        let mut results = Self {
            path: path.to_owned(),
            file,
            records,
        };
        if whole == 0 {
            results.write(&Line::Plan(plan.clone()))?;
        }
        Ok(results)
    }

    /// All runs so far, in the order in which they were made.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Appends a run. When this returns, it is on the disk.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn append(&mut self, record: Record) -> Result<(), Error> {
        self.write(&Line::Run(record.clone()))?;
        self.records.push(record);
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<(), Error> {
        let written = serde_json::to_vec(line)
            .map_err(std::io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                self.file.write_all(&line)?;
                self.file.sync_data()
            });
        written.map_err(Error::io(&self.path))
    }
}

fn read(text: &[u8], plan: &Plan) -> Result<Vec<Record>, Error> {
    let mut records: Vec<Record> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (at, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let damaged = |why: String| Error::Damaged { line: at + 1, why };
        let line: Line =
            serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
        match line {
            Line::Plan(written) if at == 0 => {
                if let Some(what) = plan.differs(&written) {
                    return Err(Error::OtherPlan(format!("{what} differ")));
                }
            }
            Line::Run(record) if at > 0 => {
                let is_planned = record.task < plan.tasks.len()
                    && record.arm < 2
                    && record.repetition < plan.repetitions;
                if !(is_planned && seen.insert(record.planned())) {
                    return Err(damaged(
                        "the run is not planned, or was made before".to_owned(),
                    ));
                }
                records.push(record);
            }
            Line::Plan(_) | Line::Run(_) => {
                return Err(damaged("the plan must be the first line".to_owned()));
            }
        }
    }
    Ok(records)
}
