//! Puts Offcut around an agent's tools by the agent's own settings, and takes it out again, from all files or from none.

mod content;
mod error;
mod file;
mod installation;
mod jsonc;
mod record;
mod servers;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use offcut::backend::Fs;
use serde::Serialize;
use serde_json::Value;

use crate::agents::Agent;
use crate::agents::layout::Home;
use crate::failure::Failure;
use content::Content;
use content::words;
pub(crate) use content::{command_of_plugin, commands_in};
use error::because;
pub(crate) use error::refused;
pub(crate) use file::AgentFile;
use file::MARK;
use jsonc::Addition;
pub(crate) use jsonc::is_strict;
use record::{Record, StoredRecord};

pub use installation::{Installation, Scope};
pub use servers::Servers;

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The changed file.
    pub path: PathBuf,
    /// The outcome.
    pub outcome: Outcome,
    /// A copy of the file as it was before Offcut was installed, if there was one and it is still kept.
    pub backup: Option<PathBuf>,
    /// The added or removed values, in words. Empty if the whole file is Offcut's.
    pub values: Vec<String>,
    /// The agent's MCP servers, if they were asked for or Offcut was in front of one.
    pub servers: Option<Servers>,
}

/// A change of the agent's file: its outcome, the values in words, and the new record with the bytes of the file
/// without Offcut.
type Done = (Outcome, Vec<String>, Option<(Record, Option<Vec<u8>>)>);

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
    /// The file is as it was before the installation, byte for byte; a new one is removed.
    Restored,
    /// The file was changed by others since: only the added values were removed.
    Removed,
}

/// The change that is made.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    Install,
    InstallWithServers,
    Uninstall,
}

impl Installation {
    /// Waits, after calling `on_wait`, for other installations of this user to be made or taken out. They wait until
    /// the file is dropped.
    pub(crate) fn lock(&self, on_wait: impl FnOnce()) -> Result<File, Failure> {
        let path = self.home.installed().join("lock");
        let opened = std::fs::create_dir_all(self.home.installed())
            .and_then(|()| File::options().append(true).create(true).open(&path));
        let file = opened.map_err(because(&path, "it can't be opened"))?;
        // Some file systems have no locks.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            on_wait();
            _ = file.lock();
        }
        Ok(file)
    }

    /// Adds Offcut to the agent's settings, and to its MCP servers where another installation did. A second time,
    /// nothing changes.
    ///
    /// Creates the user's store, because the agent gets the right to read it.
    ///
    /// # Errors
    ///
    /// The agent can't be set up like this, or a file can't be changed. All files are then unchanged.
    pub fn install(&self) -> Result<Changed, Failure> {
        self.change(Goal::Install)
    }

    /// Does the same, and puts `offcut mcp` in front of all servers over stdio that the agent's settings name.
    ///
    /// # Errors
    ///
    /// Those of [`install`](Self::install).
    pub fn install_with_servers(&self) -> Result<Changed, Failure> {
        self.change(Goal::InstallWithServers)
    }

    /// Takes Offcut out of the agent's settings and from the front of its MCP servers. If nobody else has changed
    /// the settings since, they are as they were before, byte for byte. Stored results stay.
    ///
    /// # Errors
    ///
    /// A file can't be changed, or a file of Offcut's was changed by others. All files are then unchanged.
    pub fn uninstall(&self) -> Result<Changed, Failure> {
        self.change(Goal::Uninstall)
    }

    fn change(&self, goal: Goal) -> Result<Changed, Failure> {
        let path = installed_path(self.agent, &self.scope)?;
        let stored = record::find(&self.records(), &path)?;
        let of_servers = servers::paths(self)?;
        let first = usize::from(!of_servers.contains(&path));
        let mut files = vec![AgentFile::read(&path)?];
        for other in of_servers.iter().filter(|other| **other != path) {
            match AgentFile::read(other) {
                Ok(file) => files.push(file),
                Err(error) if goal == Goal::InstallWithServers => return Err(error),
                // Nothing of ours is in it.
                Err(_) => {}
            }
        }
        let front = match goal {
            Goal::Uninstall => Vec::new(),
            _ => words(self, ["mcp", "--"])?,
        };
        let is_taken = |found: &[String]| match goal {
            Goal::Uninstall => true,
            Goal::InstallWithServers => found != front,
            // One that names no path was put there by the user.
            Goal::Install => {
                let [found, new] = [found, &front].map(|words| words.iter().rev().nth(2));
                found.is_some_and(|program| Path::new(program).is_absolute()) && found != new
            }
        };
        let mut wrapped = Vec::new();
        for file in &mut files[first..] {
            wrapped.push(servers::take_out(self.agent, file, is_taken)?);
        }
        let (outcome, values, new) = match goal {
            Goal::Uninstall => self.take_out(&mut files[0], stored.as_ref())?,
            _ => self.put_in(&mut files[0], stored.as_ref())?,
        };
        let has_servers = goal == Goal::InstallWithServers || wrapped.concat().contains(&true);
        if goal != Goal::Uninstall && has_servers {
            for (file, wrapped) in files[first..].iter_mut().zip(wrapped) {
                let chosen = |nth| {
                    goal == Goal::InstallWithServers || wrapped.get(nth).is_some_and(|is| *is)
                };
                servers::put_in_front(self.agent, file, &front, chosen)?;
            }
        }
        let servers = match has_servers {
            true => servers::found(self.agent, &files[first..])?,
            false => None,
        };
        for file in &files {
            file.expect_writable()?;
        }
        let old = match (&new, &stored) {
            (Some(_), Some(stored)) => stored.original()?,
            _ => None,
        };
        // Before the files: without its record, the change could not be taken back.
        let backup = match (&new, &stored) {
            (Some((record, original)), _) => {
                record::write(&self.records(), record, original.as_deref())?
            }
            (None, Some(stored)) if goal != Goal::Uninstall => stored.backup(),
            _ => None,
        };
        for (nth, file) in files.iter().enumerate() {
            if let Err(error) = file.write() {
                for written in &files[..nth] {
                    _ = written.restore();
                }
                match (&new, &stored) {
                    (Some(_), Some(stored)) => {
                        record::write(&self.records(), &stored.record, old.as_deref())?;
                    }
                    (Some(_), None) => {
                        let written = record::find(&self.records(), &path)?;
                        written.map_or(Ok(()), |written| written.remove())?;
                    }
                    (None, _) => {}
                }
                return Err(error);
            }
        }
        if let Some(stored) = stored.filter(|_| goal == Goal::Uninstall) {
            stored.remove()?;
        }
        Ok(Changed {
            path,
            outcome,
            backup,
            values,
            servers,
        })
    }

    /// Puts Offcut into `file`, in place of an earlier installation. Returns the outcome, the values in words, and the
    /// new record with the file's bytes without Offcut.
    fn put_in(&self, file: &mut AgentFile, stored: Option<&StoredRecord>) -> Result<Done, Failure> {
        content::expect_name(&self.program)?;
        Fs::open(&self.store).map_err(because(&self.store, "the store can't be used"))?;
        let content = content::of(self)?;
        let (values, is_there) = match &content {
            Content::Values(additions) => {
                let settings = self.settings_in(file)?;
                let mut of_record = stored.iter().flat_map(|stored| &stored.record.additions);
                let is_there = additions.iter().all(|addition| addition.is_in(&settings));
                let values = additions.iter().map(Addition::in_words).collect();
                (
                    values,
                    is_there && of_record.all(|addition| additions.contains(addition)),
                )
            }
            Content::Whole(text) => (Vec::new(), file.bytes() == Some(text.as_bytes())),
        };
        if is_there {
            return Ok((Outcome::Unchanged, values, None));
        }
        let outcome = match file.bytes() {
            None => Outcome::Created,
            Some(_) => Outcome::Added,
        };
        self.take_out(file, stored)?;
        let original = file.bytes().map(<[u8]>::to_vec);
        let mut record = Record {
            file: file.path().to_owned(),
            additions: Vec::new(),
            had_file: original.is_some(),
            written: String::new(),
        };
        match content {
            Content::Values(mut additions) => {
                // Values that were there before are not ours to remove.
                let before = jsonc::parse(file.text()?).map_err(|problem| file.refused(problem))?;
                additions.retain(|addition| !addition.is_in(&before));
                let added = jsonc::add(file.text()?, &additions);
                file.set_text(&added.map_err(|problem| file.refused(problem))?);
                record.additions = additions;
            }
            Content::Whole(text) => file.set(Some(text.into_bytes())),
        }
        record.written = String::from_utf8_lossy(file.bytes().unwrap_or_default()).into_owned();
        Ok((outcome, values, Some((record, original))))
    }

    /// Takes Offcut out of `file`. Returns the outcome and what was removed in words.
    fn take_out(
        &self,
        file: &mut AgentFile,
        stored: Option<&StoredRecord>,
    ) -> Result<Done, Failure> {
        let done = |outcome| Ok((outcome, Vec::new(), None));
        if let Some(stored) = stored
            && stored.undoes(file)
        {
            file.set(stored.original()?);
            return done(Outcome::Restored);
        }
        match content::of(self)? {
            Content::Values(wanted) => {
                let additions = stored.map_or(wanted, |one| one.record.additions.clone());
                let original = stored.map(StoredRecord::original).transpose()?.flatten();
                let original = original.and_then(|bytes| jsonc::parse(text_of(&bytes)).ok());
                let is_ours = |command: &str| content::is_ours(command, self.agent);
                let removed = jsonc::remove(file.text()?, &additions, is_ours, original.as_ref());
                let (text, values) = removed.map_err(|problem| file.refused(problem))?;
                if values.is_empty() {
                    return done(Outcome::Unchanged);
                }
                file.set_text(&text);
                Ok((Outcome::Removed, values, None))
            }
            Content::Whole(text) => {
                let ours = stored.map_or(&text, |stored| &stored.record.written);
                if file.bytes() == Some(ours.as_bytes()) {
                    file.set(None);
                    return done(Outcome::Restored);
                }
                let is_users = stored.is_none()
                    && command_of_plugin(file.text()?, self.agent).is_none()
                    && !file.text()?.contains("placed by `offcut install`");
                if is_users || file.bytes().is_none() {
                    return done(Outcome::Unchanged);
                }
                Err(file.refused(
                    "it was changed after Offcut placed it, or its record is gone; remove it if you do not need it, and try again",
                ))
            }
        }
    }

    /// Returns true if the agent's file has what an installation would give it.
    ///
    /// # Errors
    ///
    /// The file can't be read or understood.
    pub(crate) fn is_up_to_date(&self) -> Result<bool, Failure> {
        let path = installed_path(self.agent, &self.scope)?;
        let file = AgentFile::read(&path)?;
        match content::of(self)? {
            Content::Values(additions) => {
                let settings = self.settings_in(&file)?;
                Ok(additions.iter().all(|addition| addition.is_in(&settings)))
            }
            Content::Whole(text) => Ok(file.bytes() == Some(text.as_bytes())),
        }
    }

    /// The settings in `file`, which are refused if a replaced result would be an error under them.
    fn settings_in(&self, file: &AgentFile) -> Result<Value, Failure> {
        let settings = jsonc::parse(file.text()?);
        let checked = settings.and_then(|settings| content::checked(self.agent, settings));
        checked.map_err(|problem| file.refused(problem))
    }

    fn records(&self) -> PathBuf {
        records(&self.home, self.agent)
    }
}

/// The folder of the records of an agent's changed files.
pub(crate) fn records(home: &Home, agent: Agent) -> PathBuf {
    home.installed().join(agent.facts().name)
}

/// The file that an installation changes: the agent's settings, or a plug-in of ours.
pub(crate) fn installed_path(agent: Agent, scope: &Scope) -> Result<PathBuf, Failure> {
    let [of_user, of_project] = agent.facts().installed;
    scope.place(agent, agent.facts().settings.join(of_user), of_project)
}

/// Parses a settings file; a missing one is empty.
pub(crate) fn parse_settings(path: &Path) -> Result<Value, Failure> {
    let file = AgentFile::read(path)?;
    jsonc::parse(file.text()?).map_err(|problem| file.refused(problem))
}

/// Reads the text of a settings file; a missing one is empty.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    Ok(AgentFile::read(path)?.text()?.to_owned())
}

/// The text of a settings file, without a byte order mark.
fn text_of(bytes: &[u8]) -> &str {
    let text = str::from_utf8(bytes).unwrap_or_default();
    text.strip_prefix(MARK).unwrap_or(text)
}
