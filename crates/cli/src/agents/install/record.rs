//! A record of each changed file, by which the change is taken back.

use std::path::{Path, PathBuf};

use offcut::config::read_file;
use serde::{Deserialize, Serialize};

use super::error::because;
use super::file::AgentFile;
use super::jsonc::Addition;
use crate::agents::layout;
use crate::failure::Failure;

/// The changes that Offcut made to one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The changed file.
    pub(crate) file: PathBuf,
    /// Values that were added; empty if the whole file is ours.
    pub(crate) additions: Vec<Addition>,
    /// True if there was a file before the change; the backup holds its bytes.
    pub(crate) had_file: bool,
    /// The file's text after the change.
    pub(crate) written: String,
}

/// A record in its folder: `<number>.json`, and `<number>.backup` beside it.
#[derive(Debug)]
pub(crate) struct StoredRecord {
    json: PathBuf,
    pub(crate) record: Record,
}

impl StoredRecord {
    /// Returns true if `file` is as the change left it.
    pub(crate) fn is_in(&self, file: &AgentFile) -> bool {
        file.bytes() == Some(self.record.written.as_bytes())
    }

    /// The path of the backup; `None` if there was no file, or it is gone.
    pub(crate) fn backup(&self) -> Option<PathBuf> {
        let backup = backup(&self.json);
        (self.record.had_file && backup.exists()).then_some(backup)
    }

    /// Returns true if `file` is as the change left it, and the bytes before the change are known.
    pub(crate) fn undoes(&self, file: &AgentFile) -> bool {
        self.is_in(file) && self.record.had_file == self.backup().is_some()
    }

    /// The file's bytes before the change; `None` if there was no file, or the backup is gone.
    pub(crate) fn original(&self) -> Result<Option<Vec<u8>>, Failure> {
        let read =
            |backup: PathBuf| read_file(&backup).map_err(because(&backup, "it can't be read"));
        self.backup().map(read).transpose()
    }

    /// Removes the record and the backup.
    pub(crate) fn remove(&self) -> Result<(), Failure> {
        replace(&self.json, None)?;
        replace(&backup(&self.json), None)
    }
}

/// Finds the record of the file at `path` in a folder of records, which may be missing.
pub(crate) fn find(folder: &Path, path: &Path) -> Result<Option<StoredRecord>, Failure> {
    let paths = layout::paths_in(folder).map_err(because(folder, "it can't be read"))?;
    let is_json = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    };
    for json in paths.into_iter().filter(is_json) {
        let problem = "it is damaged; remove it, and Offcut's lines from the agent's settings";
        let read = serde_json::from_slice(AgentFile::read(&json)?.bytes().unwrap_or_default());
        let record: Record = read.map_err(because(&json, problem))?;
        if record.file == path {
            return Ok(Some(StoredRecord { json, record }));
        }
    }
    Ok(None)
}

/// Writes a record, and a backup of the file as it was before. An older record of the file is replaced.
/// Returns the path of the backup, if there was a file.
pub(crate) fn write(
    folder: &Path,
    record: &Record,
    original: Option<&[u8]>,
) -> Result<Option<PathBuf>, Failure> {
    let json = match find(folder, &record.file)? {
        Some(stored) => stored.json,
        None => (1..)
            .map(|number: u32| folder.join(format!("{number}.json")))
            .find(|json| !json.exists())
            .unwrap_or_else(|| folder.join("0.json")),
    };
    // New files can be read by their user alone: settings hold secrets.
    replace(&backup(&json), original)?;
    let text = serde_json::to_vec_pretty(record).map_err(because(&json, "it can't be written"))?;
    replace(&json, Some(&text))?;
    Ok(original.map(|_| backup(&json)))
}

fn backup(json: &Path) -> PathBuf {
    json.with_extension("backup")
}

fn replace(path: &Path, bytes: Option<&[u8]>) -> Result<(), Failure> {
    let mut file = AgentFile::read(path)?;
    file.set(bytes.map(<[u8]>::to_vec));
    file.write()
}
