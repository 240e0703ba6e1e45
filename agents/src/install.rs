//! Puts Offcut into an agent's own settings, and takes it out again.

mod additions;
mod error;
mod file;
mod installation;
mod jsonc;
mod record;

use std::path::{Path, PathBuf};

use offcut::backend::Fs;

use file::AgentFile;
use jsonc::Addition;
use record::Record;

pub(crate) use additions::command_of;
pub use additions::settings_path;
pub use error::InstallError;
pub use installation::{Installation, Scope};

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// The changed file.
    pub path: PathBuf,
    /// The outcome.
    pub outcome: Outcome,
    /// A copy of the file as it was before Offcut was installed, if there was one and it is still kept.
    pub backup: Option<PathBuf>,
    /// The added or removed values, in words.
    pub values: Vec<String>,
}

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The file was created.
    Created,
    /// Values were added.
    Added,
    /// Everything was there already.
    Unchanged,
    /// The file is as it was before the installation, byte for byte.
    Restored,
    /// The file was changed by others since: only the added values were removed.
    Removed,
}

impl Installation {
    /// Adds Offcut to the agent's settings. A second time, nothing changes.
    ///
    /// Creates the user's store, because the agent gets the right to read it.
    ///
    /// # Errors
    ///
    /// The agent can't be put to use this way, or a file can't be changed. Files are then unchanged.
    pub fn install(&self) -> Result<Vec<Changed>, InstallError> {
        let path = settings_path(self.agent, &self.scope)?;
        let store = self.home.store();
        Fs::open(&store)
            .map_err(|error| InstallError::because(&store, "the store can't be used", error))?;
        let additions = additions::of(self)?;
        Ok(vec![self.add(&path, additions)?])
    }

    /// Removes Offcut from the agent's settings. If nobody else has changed a file since, it is as it was
    /// before, byte for byte. Stored results stay.
    ///
    /// # Errors
    ///
    /// A file can't be changed. It is then unchanged.
    pub fn uninstall(&self) -> Result<Vec<Changed>, InstallError> {
        let path = settings_path(self.agent, &self.scope)?;
        let file = AgentFile::read(&path)?;
        let stored = record::find(&self.records(), &path)?;
        let additions = match &stored {
            Some(stored) => stored.record.additions.clone(),
            None => additions::of(self)?,
        };
        let (outcome, bytes) = match &stored {
            Some(stored) if file.bytes() == Some(stored.record.written.as_bytes()) => {
                (Outcome::Restored, stored.original()?)
            }
            _ if file.bytes().is_none() => (Outcome::Unchanged, None),
            _ => {
                let original = match &stored {
                    Some(stored) => stored.original()?,
                    None => None,
                };
                let original = original.and_then(|bytes| value_of(&bytes));
                let (text, is_marked) = file.text()?;
                let removed = jsonc::remove(text, &additions, original.as_ref())
                    .map_err(|problem| InstallError::new(&path, problem))?;
                let is_changed = removed != text;
                let outcome = if is_changed {
                    Outcome::Removed
                } else {
                    Outcome::Unchanged
                };
                (outcome, Some(marked(&removed, is_marked)))
            }
        };
        file.replace(bytes.as_deref())?;
        if let Some(stored) = stored {
            stored.remove()?;
        }
        Ok(vec![Changed {
            path,
            outcome,
            backup: None,
            values: additions::in_words(&additions),
        }])
    }

    fn add(&self, path: &Path, additions: Vec<Addition>) -> Result<Changed, InstallError> {
        let file = AgentFile::read(path)?;
        let records = self.records();
        let stored = record::find(&records, path)?;
        let values = additions::in_words(&additions);
        let refuse = |problem: String| InstallError::new(path, problem);
        let (text, is_marked) = file.text()?;

        let current = jsonc::parse(text).map_err(refuse)?;
        let is_there = additions.iter().all(|addition| addition.is_in(&current));
        let is_all = stored
            .iter()
            .flat_map(|stored| &stored.record.additions)
            .all(|addition| additions.contains(addition));
        if is_there && is_all {
            let backup = stored.and_then(|stored| stored.backup());
            let (path, outcome) = (path.to_owned(), Outcome::Unchanged);
            return Ok(Changed {
                path,
                outcome,
                backup,
                values,
            });
        }

        // Values of an earlier installation go first: its program may have been another one.
        let is_ours = stored
            .as_ref()
            .is_some_and(|stored| file.bytes() == Some(stored.record.written.as_bytes()));
        let original = match &stored {
            Some(stored) if is_ours => stored.original()?,
            Some(stored) => {
                let before = stored.original()?.and_then(|bytes| value_of(&bytes));
                let removed = jsonc::remove(text, &stored.record.additions, before.as_ref());
                Some(marked(&removed.map_err(refuse)?, is_marked))
                    .filter(|_| file.bytes().is_some())
            }
            None => file.bytes().map(<[u8]>::to_vec),
        };
        let base = original.as_deref().map(text_of).unwrap_or_default();
        // Values that were there before are not ours to remove.
        let before = jsonc::parse(base).map_err(refuse)?;
        let mut missing = additions;
        missing.retain(|addition| !addition.is_in(&before));
        let added = jsonc::add(base, &missing).map_err(refuse)?;
        let written = marked(&added, is_marked);

        let outcome = match file.bytes() {
            None => Outcome::Created,
            Some(_) => Outcome::Added,
        };
        let record = Record {
            file: path.to_owned(),
            additions: missing,
            had_file: original.is_some(),
            written: String::from_utf8_lossy(&written).into_owned(),
        };
        // The record first: a change without one could not be taken back byte for byte.
        let is_new = stored.is_none();
        let backup = record::write(&records, &record, original.as_deref())?;
        if let Err(error) = file.replace(Some(&written)) {
            if is_new && let Some(stored) = record::find(&records, path)? {
                stored.remove()?;
            }
            return Err(error);
        }
        Ok(Changed {
            path: path.to_owned(),
            outcome,
            backup,
            values,
        })
    }

    fn records(&self) -> PathBuf {
        self.home.installed().join(self.agent.name())
    }
}

/// Parses a settings file; a missing one is empty.
pub(crate) fn parse_settings(path: &Path) -> Result<serde_json::Value, InstallError> {
    let file = AgentFile::read(path)?;
    jsonc::parse(file.text()?.0).map_err(|problem| InstallError::new(path, problem))
}

/// The text of a settings file, without a byte order mark.
fn text_of(bytes: &[u8]) -> &str {
    let text = str::from_utf8(bytes).unwrap_or_default();
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn value_of(bytes: &[u8]) -> Option<serde_json::Value> {
    jsonc::parse(text_of(bytes)).ok()
}

fn marked(text: &str, is_marked: bool) -> Vec<u8> {
    let mark = if is_marked { "\u{feff}" } else { "" };
    [mark.as_bytes(), text.as_bytes()].concat()
}
