//! A file of an agent with the record of its change and a backup, by which the change is taken back.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::file::{AgentFile, because};
use super::jsonc::Addition;
use crate::failure::Failure;
use crate::units::hex;

/// The changes that Offcut made to one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The changed file.
    file: PathBuf,
    /// Values that were added; empty if the whole file is ours.
    pub(super) additions: Vec<Addition>,
    /// True if there was a file before the change; the backup holds its bytes.
    had_file: bool,
    /// The file's text after the change.
    pub(super) written: String,
    /// The folders above it that were made for it, the innermost first.
    folders: Vec<PathBuf>,
}

/// A file of an agent, which changes together with its record and the backup. These can be read by their user alone:
/// settings hold secrets.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) file: AgentFile,
    pub(super) json: AgentFile,
    pub(super) backup: AgentFile,
    pub(super) record: Option<Record>,
    /// The folders above the file that were made for it or have to be, the innermost first.
    pub(super) folders: Vec<PathBuf>,
}

impl Tracked {
    /// Reads the file at `path`, and its record in a folder, which may be missing.
    pub(super) fn read(folder: &Path, path: &Path) -> Result<Self, Failure> {
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        let kept = |ending| AgentFile::read(&folder.join(hex(&digest[..8])).with_extension(ending));
        let json = kept("json")?;
        let problem = "it is damaged; remove it, and Offcut's lines from the agent's settings";
        let record = json.bytes().map(serde_json::from_slice).transpose();
        let record: Option<Record> = record.map_err(because(json.path(), problem))?;
        let above = path.ancestors().skip(1);
        let missing = above.take_while(|folder| !folder.exists());
        Ok(Self {
            file: AgentFile::read(path)?,
            folders: match &record {
                Some(record) => record.folders.clone(),
                None => missing.map(PathBuf::from).collect(),
            },
            record,
            backup: kept("backup")?,
            json,
        })
    }

    /// The file's bytes before the change; `None` if there was no file, or the backup is gone.
    pub(super) fn original(&self) -> Option<&[u8]> {
        let record = self.record.as_ref().filter(|record| record.had_file);
        record.and_then(|_| self.backup.bytes())
    }

    /// The settings before the change; empty if they are unknown.
    pub(super) fn before(&self) -> Value {
        let known = self.original().and_then(|_| self.backup.json().ok());
        known.unwrap_or_default()
    }

    /// Gives the file the bytes before the change, if these are known and it is as the change left it. Returns true if
    /// so.
    pub(super) fn undo(&mut self) -> bool {
        let is_known = self.record.as_ref().is_some_and(|record| {
            self.file.bytes() == Some(record.written.as_bytes())
                && record.had_file == self.original().is_some()
        });
        if is_known {
            self.file.set(self.original().map(<[u8]>::to_vec));
        }
        is_known
    }

    /// Makes a record of the file as it is now, with `additions` to what it was, `original`.
    pub(super) fn keep(&mut self, additions: Vec<Addition>, original: Option<Vec<u8>>) {
        let written = String::from_utf8_lossy(self.file.bytes().unwrap_or_default()).into_owned();
        let record = Record {
            file: self.file.path().to_owned(),
            additions,
            had_file: original.is_some(),
            written,
            folders: self.folders.clone(),
        };
        // Pretty, since a person may look for a file here.
        self.json.set(serde_json::to_vec_pretty(&record).ok());
        self.backup.set(original);
        self.record = Some(record);
    }

    /// Removes the record.
    pub(super) fn forget(&mut self) {
        self.json.set(None);
        self.backup.set(None);
        self.record = None;
    }
}
