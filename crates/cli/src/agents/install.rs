//! Puts Offcut around an agent's tools by the agent's own settings, and takes it out again, from all files or from none.

mod content;
mod file;
mod installation;
mod jsonc;
mod record;

use std::fs::File;
use std::path::{Path, PathBuf};

use offcut::backend::Fs;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::failure::Failure;
use content::Content;
pub(crate) use content::{TIME_OUT, command_of_plugin, commands_in};
use file::because;
pub(crate) use file::{AgentFile, refused};
use jsonc::Addition;
pub(crate) use jsonc::shown;
use record::Tracked;

pub use installation::Installation;

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// The agent's name.
    pub agent: &'static str,
    /// The changed file.
    pub path: PathBuf,
    /// The outcome.
    pub outcome: Outcome,
    /// True for a dry run: nothing was written.
    #[serde(rename = "dry_run")]
    pub is_dry: bool,
    /// A copy of the file as it was before Offcut was installed, if there was one and it is still kept.
    pub backup: Option<PathBuf>,
    /// The added values, in words.
    pub added: Vec<String>,
    /// The removed values, in words.
    pub removed: Vec<String>,
}

/// The outcome of a change of the agent's file, and the removed values in words.
type Done = (Outcome, Vec<String>);

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The file was created.
    Created,
    /// Values were added, or a file of Offcut's was replaced.
    Added,
    /// Nothing had to change.
    Unchanged,
    /// The file is as it was before the installation, byte for byte, less older hooks of Offcut.
    Restored,
    /// The file, which the installation had created, is gone.
    Deleted,
    /// The file was changed by others since: only the added values were removed.
    Removed,
}

impl Installation {
    /// Waits for other installations of this user to be made or taken out. They wait until the file is dropped.
    pub(crate) fn lock(&self) -> Result<File, Failure> {
        let path = self.home.installed().join("lock");
        let opened = std::fs::create_dir_all(self.home.installed())
            .and_then(|()| File::options().append(true).create(true).open(&path));
        let file = opened.map_err(because(&path, "it can't be opened"))?;
        // Some file systems have no locks.
        _ = file.lock();
        Ok(file)
    }

    /// Adds Offcut to the agent's settings. A second time, nothing changes.
    ///
    /// # Errors
    ///
    /// The agent can't be set up like this, or a file can't be changed. All files are then unchanged.
    pub fn install(&self) -> Result<Changed, Failure> {
        let mut file = self.file()?;
        let (done, added) = self.put_in(&mut file)?;
        // Without its record, a change could not be taken back, so the record is there before.
        if !self.is_dry {
            file::write_all(&[&file.backup, &file.json, &file.file])?;
        }
        Ok(self.changed(&file, done, added))
    }

    /// Takes Offcut out of the agent's settings. If nobody else has changed the settings since, they are as they were
    /// before, byte for byte. Stored results stay.
    ///
    /// # Errors
    ///
    /// A file can't be changed, or a file of Offcut's was changed by others. All files are then unchanged.
    pub fn uninstall(&self) -> Result<Changed, Failure> {
        let mut file = self.file()?;
        let done = self.take_out(&mut file)?;
        if !self.is_dry {
            file::write_all(&[&file.file, &file.backup, &file.json])?;
            if done.0 == Outcome::Deleted {
                // One that somebody has put something into stays, and those above it.
                _ = file.folders.iter().try_for_each(std::fs::remove_dir);
            }
        }
        Ok(self.changed(&file, done, Vec::new()))
    }

    fn changed(&self, file: &Tracked, (outcome, removed): Done, added: Vec<String>) -> Changed {
        Changed {
            agent: self.agent.facts().name,
            path: file.file.path().to_owned(),
            outcome,
            is_dry: self.is_dry,
            backup: file.original().map(|_| file.backup.path().to_owned()),
            added,
            removed,
        }
    }

    /// The agent's file with its record.
    fn file(&self) -> Result<Tracked, Failure> {
        let records = self.home.installed().join(self.agent.facts().name);
        Tracked::read(&records, &self.path()?)
    }

    /// Puts Offcut into a file, in place of an earlier installation. Returns the added values in words, too.
    fn put_in(&self, file: &mut Tracked) -> Result<(Done, Vec<String>), Failure> {
        content::expect_name(&self.program)?;
        Fs::open(&self.store).map_err(because(&self.store, "the store can't be used"))?;
        let mut content = content::of(self)?;
        let old = file.record.as_ref().map(|record| &record.additions);
        let is_wanted = old.is_none_or(|old| content.has(old));
        if content.is_in(&file.file, self.agent)? && is_wanted {
            return Ok(((Outcome::Unchanged, Vec::new()), Vec::new()));
        }
        let outcome = match file.file.bytes() {
            None => Outcome::Created,
            Some(_) => Outcome::Added,
        };
        let (_, mut removed) = self.take_out(file)?;
        let original = file.file.bytes().map(<[u8]>::to_vec);
        match &mut content {
            Content::Values(additions) => {
                // Values that were there before are not ours to remove.
                let before = file.file.json()?;
                additions.retain(|addition| !addition.is_in(&before));
                let added = jsonc::add(file.file.text()?, additions);
                let added = added.map_err(|problem| file.file.unusable(&problem))?;
                file.file.set_text(&added);
                file.keep(additions.clone(), original);
            }
            Content::Whole(_) if original.is_some() => {
                let problem = "it is a plug-in of yours; give it another name, and try again";
                return Err(file.file.refused(problem));
            }
            Content::Whole(text) => {
                file.file.set(Some(text.as_bytes().to_vec()));
                file.keep(Vec::new(), original);
            }
        }
        // Values that are replaced by themselves do not change.
        let mut added = content.in_words(self.agent);
        let both = added.clone();
        added.retain(|value| !removed.contains(value));
        removed.retain(|value| !both.contains(value));
        Ok(((outcome, removed), added))
    }

    /// Takes Offcut out of a file.
    fn take_out(&self, file: &mut Tracked) -> Result<Done, Failure> {
        let done = if file.undo() {
            // Also if settings could not name the store or the program any more.
            let added = file.record.iter().flat_map(|record| &record.additions);
            let outcome = match file.file.bytes() {
                Some(_) => Outcome::Restored,
                None => Outcome::Deleted,
            };
            (outcome, added.map(Addition::in_words).collect())
        } else {
            match content::of(self)? {
                Content::Values(values) => self.take_values_out(file, &values)?,
                Content::Whole(text) => self.take_plugin_out(file, &text)?,
            }
        };
        file.forget();
        Ok(done)
    }

    fn take_values_out(&self, file: &mut Tracked, wanted: &[Addition]) -> Result<Done, Failure> {
        let record = file.record.as_ref();
        let additions = record.map_or(wanted, |record| &record.additions);
        let is_ours = |command: &str| content::is_ours(command, self.agent);
        let removed = jsonc::remove(file.file.text()?, additions, &file.before(), is_ours);
        let (text, values) = removed.map_err(|problem| file.file.unusable(&problem))?;
        if values.is_empty() {
            return Ok((Outcome::Unchanged, values));
        }
        file.file.set_text(&text);
        Ok((Outcome::Removed, values))
    }

    fn take_plugin_out(&self, file: &mut Tracked, wanted: &str) -> Result<Done, Failure> {
        let record = file.record.as_ref();
        let ours = record.map_or(wanted, |record| &record.written);
        if file.file.bytes() == Some(ours.as_bytes()) {
            file.file.set(None);
            return Ok((Outcome::Deleted, Vec::new()));
        }
        let found = file.file.text()?;
        let is_users = record.is_none()
            && command_of_plugin(found, self.agent).is_none()
            && !found.contains("placed by `offcut install`");
        match is_users || file.file.bytes().is_none() {
            true => Ok((Outcome::Unchanged, Vec::new())),
            false => Err(file.file.refused(
                "it was changed after Offcut placed it, or its record is gone; move it to another folder, and try again",
            )),
        }
    }
}

/// Parses a settings file; a missing one is empty.
pub(crate) fn parse_settings(path: &Path) -> Result<Value, Failure> {
    AgentFile::read(path)?.json()
}

/// Parses TOML settings; a missing file is empty.
pub(crate) fn parse_toml(path: &Path) -> Result<Map<String, Value>, Failure> {
    // Its message would quote the line, and settings hold secrets.
    let problem = "it is not TOML; mend it, and try again";
    toml::from_str(&read_text(path)?).map_err(|_| refused(path, problem))
}

/// Reads the text of a settings file; a missing one is empty.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    Ok(AgentFile::read(path)?.text()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_in_toml_are_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        assert!(parse_toml(&file).unwrap().is_empty());
        std::fs::write(&file, "features.hooks = false").unwrap();
        assert_eq!(parse_toml(&file).unwrap()["features"]["hooks"], false);
        std::fs::write(&file, "key = sk-secret").unwrap();
        let error = parse_toml(&file).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(std::error::Error::source(&error).is_none());
    }
}
