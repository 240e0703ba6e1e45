//! A record of each changed file, by which the change is taken back.

use std::path::{Path, PathBuf};

use offcut::config::read_file;
use serde::{Deserialize, Serialize};

use super::error::InstallError;
use super::file::AgentFile;
use super::jsonc::Addition;
use crate::agents::layout;

/// The changes that Offcut made to one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The changed file.
    pub(crate) file: PathBuf,
    /// Values that were added; empty if the whole file is ours.
    pub(crate) additions: Vec<Addition>,
    /// True if there was a file before the change; the backup holds its bytes.
    pub(crate) had_file: bool,
    /// The folders that were created for it, the innermost first.
    #[serde(default)]
    pub(crate) folders: Vec<PathBuf>,
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

    /// The path of the backup; `None` if there was no file.
    pub(crate) fn backup(&self) -> Option<PathBuf> {
        self.record.had_file.then(|| backup(&self.json))
    }

    /// The file's bytes before the change; `None` if there was no file.
    pub(crate) fn original(&self) -> Result<Option<Vec<u8>>, InstallError> {
        let backup = backup(&self.json);
        let read = || {
            read_file(&backup)
                .map_err(|error| InstallError::because(&backup, "it can't be read", error))
        };
        self.record.had_file.then(read).transpose()
    }

    /// Removes the record and the backup.
    pub(crate) fn remove(&self) -> Result<(), InstallError> {
        replace(&self.json, None)?;
        replace(&backup(&self.json), None)
    }
}

/// Finds the record of the file at `path` in a folder of records, which may be missing.
pub(crate) fn find(folder: &Path, path: &Path) -> Result<Option<StoredRecord>, InstallError> {
    let all = all(folder)?;
    Ok(all.into_iter().find(|stored| stored.record.file == path))
}

/// Reads all records of a folder, which may be missing.
pub(crate) fn all(folder: &Path) -> Result<Vec<StoredRecord>, InstallError> {
    let paths = layout::paths_in(folder)
        .map_err(|error| InstallError::because(folder, "it can't be read", error))?;
    let mut all = Vec::new();
    for json in paths {
        if json.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file = AgentFile::read(&json)?;
        let parsed = serde_json::from_slice(file.bytes().unwrap_or_default());
        let record = parsed.map_err(|error| {
            let problem = "it is damaged; remove it, and Offcut's lines from the agent's settings";
            InstallError::because(&json, problem, error)
        })?;
        all.push(StoredRecord { json, record });
    }
    Ok(all)
}

/// Writes a record, and a backup of the file as it was before. An older record of the file is replaced.
/// Returns the path of the backup, if there was a file.
pub(crate) fn write(
    folder: &Path,
    record: &Record,
    original: Option<&[u8]>,
) -> Result<Option<PathBuf>, InstallError> {
    let json = match find(folder, &record.file)? {
        Some(stored) => stored.json,
        None => (1..)
            .map(|number: u32| folder.join(format!("{number}.json")))
            .find(|json| !json.exists())
            .unwrap_or_else(|| folder.join("0.json")),
    };
    // New files can be read by their user alone: settings hold secrets.
    replace(&backup(&json), original)?;
    let text = serde_json::to_vec_pretty(record)
        .map_err(|error| InstallError::because(&json, "it can't be written", error))?;
    replace(&json, Some(&text))?;
    Ok(original.map(|_| backup(&json)))
}

fn backup(json: &Path) -> PathBuf {
    json.with_extension("backup")
}

fn replace(path: &Path, bytes: Option<&[u8]>) -> Result<(), InstallError> {
    AgentFile::read(path)?.replace(bytes)
}
