//! A record of each changed file and a backup beside it, by which the change is taken back.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::file::{AgentFile, because};
use super::jsonc::Addition;
use crate::failure::Failure;
use crate::units::hex;

/// The changes that Offcut made to one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The changed file.
    pub(super) file: PathBuf,
    /// Values that were added; empty if the whole file is ours.
    pub(super) additions: Vec<Addition>,
    /// True if there was a file before the change; the backup holds its bytes.
    pub(super) had_file: bool,
    /// The file's text after the change.
    pub(super) written: String,
}

/// The record of a file and the backup beside it, which change together with the file.
#[derive(Debug)]
pub(super) struct Kept {
    json: AgentFile,
    pub(super) backup: AgentFile,
    pub(super) record: Option<Record>,
}

impl Kept {
    /// Reads what a folder, which may be missing, holds about the file at `path`.
    pub(super) fn read(folder: &Path, path: &Path) -> Result<Self, Failure> {
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        let file = |ending| AgentFile::read(&folder.join(hex(&digest[..8])).with_extension(ending));
        let json = file("json")?;
        let problem = "it is damaged; remove it, and Offcut's lines from the agent's settings";
        let record = json.bytes().map(serde_json::from_slice).transpose();
        Ok(Self {
            record: record.map_err(because(json.path(), problem))?,
            backup: file("backup")?,
            json,
        })
    }

    /// The file's bytes before the change; `None` if there was no file, or the backup is gone.
    pub(super) fn original(&self) -> Option<&[u8]> {
        let record = self.record.as_ref().filter(|record| record.had_file);
        record.and_then(|_| self.backup.bytes())
    }

    /// Returns true if `file` is as the change left it, and the bytes before the change are known.
    pub(super) fn undoes(&self, file: &AgentFile) -> bool {
        self.record.as_ref().is_some_and(|record| {
            file.bytes() == Some(record.written.as_bytes())
                && record.had_file == self.original().is_some()
        })
    }

    /// Keeps `record` and the bytes before the change, or forgets everything.
    pub(super) fn set(&mut self, record: Option<Record>, original: Option<Vec<u8>>) {
        // Pretty, since a person may look for a file here.
        let json = record.as_ref().map(serde_json::to_vec_pretty);
        self.json.set(json.and_then(Result::ok));
        self.backup.set(original);
        self.record = record;
    }

    /// The files of the record. They can be read by their user alone: settings hold secrets.
    pub(super) fn files(&self) -> [&AgentFile; 2] {
        [&self.backup, &self.json]
    }
}
