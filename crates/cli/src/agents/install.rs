//! Puts Offcut around an agent's tools by the agent's own settings, and takes it out again, from all files or from none.

mod content;
mod file;
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
use content::{Content, words};
pub(crate) use content::{command_of_plugin, commands_in};
use file::because;
pub(crate) use file::{AgentFile, refused};
use record::{Kept, Record};

pub use servers::Servers;

/// The place of an agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The user's own settings, for all projects.
    User,
    /// The user's own settings for the project in this folder, which are not shared with others.
    Project(PathBuf),
}

impl Scope {
    /// The file of `agent` in this scope: `of_user`, or `of_project` in the project's folder.
    fn place(
        &self,
        agent: Agent,
        of_user: Option<PathBuf>,
        of_project: &str,
    ) -> Result<PathBuf, Failure> {
        match self {
            Self::User => of_user.ok_or_else(|| {
                let problem = "there is no home directory; set HOME";
                refused(Path::new(agent.facts().name), problem)
            }),
            Self::Project(folder) => {
                let problem = "it can't be opened; name the folder of a project";
                let opened = folder.canonicalize().map_err(because(folder, problem));
                opened.map(|folder| folder.join(of_project))
            }
        }
    }
}

/// An installation: an agent, the place of its settings, and what they are to name.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The agent.
    pub agent: Agent,
    /// The place of its settings.
    pub scope: Scope,
    /// The user's folder.
    pub home: Home,
    /// The directory that the agent gets the right to read: the store of the user's settings if it is one, else that of
    /// the user's folder.
    pub store: PathBuf,
    /// The program `offcut`, which the settings name.
    pub program: PathBuf,
}

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

/// The outcome of a change of the agent's file, and the values in words.
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
        let mut kept = Kept::read(&records(&self.home, self.agent), &path)?;
        let of_servers = servers::paths(self)?;
        // One file may have both.
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
        // Before the hook: a file with both is then as its record has it.
        let taken = self.take_out_servers(goal, &front, &mut files[first..])?;
        let (outcome, values) = match goal {
            Goal::Uninstall => self.take_out(&mut files[0], &kept)?,
            _ => self.put_in(&mut files[0], &mut kept)?,
        };
        let has_servers = goal == Goal::InstallWithServers || taken.concat().contains(&true);
        if goal != Goal::Uninstall && has_servers {
            for (file, taken) in files[first..].iter_mut().zip(taken) {
                let was_taken = |nth| taken.get(nth).is_some_and(|is| *is);
                let chosen = |nth| goal == Goal::InstallWithServers || was_taken(nth);
                servers::put_in_front(self.agent, file, &front, chosen)?;
            }
        }
        let servers = match has_servers {
            true => servers::found(self.agent, &files[first..])?,
            false => None,
        };
        if goal == Goal::Uninstall {
            kept.set(None, None);
        }
        // The record outlives the change: without it, the change could not be taken back.
        let (records, changed) = (kept.files().into_iter(), files.iter());
        let all: Vec<&AgentFile> = match goal {
            Goal::Uninstall => changed.chain(records).collect(),
            _ => records.chain(changed).collect(),
        };
        file::write_all(&all)?;
        let backup = kept.original().map(|_| kept.backup.path().to_owned());
        Ok(Changed {
            path,
            outcome,
            backup,
            values,
            servers,
        })
    }

    /// Takes what earlier installations put in front of servers out of `files`, as far as `front` or nothing is to take
    /// its place. Returns true for each server of each file that had any.
    fn take_out_servers(
        &self,
        goal: Goal,
        front: &[String],
        files: &mut [AgentFile],
    ) -> Result<Vec<Vec<bool>>, Failure> {
        let is_taken = |found: &[String]| match goal {
            Goal::Uninstall => true,
            Goal::InstallWithServers => found != front,
            // One that names no path was put there by the user.
            Goal::Install => {
                let [found, new] = [found, front].map(|words| words.iter().rev().nth(2));
                found.is_some_and(|program| Path::new(program).is_absolute()) && found != new
            }
        };
        let files = files.iter_mut();
        files
            .map(|file| servers::take_out(self.agent, file, is_taken))
            .collect()
    }

    /// Puts Offcut into `file`, in place of an earlier installation, and keeps a record.
    fn put_in(&self, file: &mut AgentFile, kept: &mut Kept) -> Result<Done, Failure> {
        content::expect_name(&self.program)?;
        Fs::open(&self.store).map_err(because(&self.store, "the store can't be used"))?;
        let content = content::of(self)?;
        let values = content.in_words();
        let old = kept.record.as_ref().map(|record| &record.additions);
        let is_wanted = old.is_none_or(|old| content.has(old));
        if content.is_in(file, self.agent)? && is_wanted {
            return Ok((Outcome::Unchanged, values));
        }
        let outcome = match file.bytes() {
            None => Outcome::Created,
            Some(_) => Outcome::Added,
        };
        self.take_out(file, kept)?;
        let original = file.bytes().map(<[u8]>::to_vec);
        let additions = match content {
            Content::Values(mut additions) => {
                // Values that were there before are not ours to remove.
                let before = file.json()?;
                additions.retain(|addition| !addition.is_in(&before));
                let added = jsonc::add(file.text()?, &additions);
                file.set_text(&added.map_err(|problem| file.refused(problem))?);
                additions
            }
            Content::Whole(text) => {
                file.set(Some(text.into_bytes()));
                Vec::new()
            }
        };
        let record = Record {
            file: file.path().to_owned(),
            additions,
            had_file: original.is_some(),
            written: String::from_utf8_lossy(file.bytes().unwrap_or_default()).into_owned(),
        };
        kept.set(Some(record), original);
        Ok((outcome, values))
    }

    /// Takes Offcut out of `file`.
    fn take_out(&self, file: &mut AgentFile, kept: &Kept) -> Result<Done, Failure> {
        if kept.undoes(file) {
            file.set(kept.original().map(<[u8]>::to_vec));
            return Ok((Outcome::Restored, Vec::new()));
        }
        let record = kept.record.as_ref();
        match content::of(self)? {
            Content::Values(wanted) => {
                let additions = record.map_or(&wanted, |record| &record.additions);
                let original = kept.original().and_then(|_| kept.backup.json().ok());
                let is_ours = |command: &str| content::is_ours(command, self.agent);
                let removed = jsonc::remove(file.text()?, additions, is_ours, original.as_ref());
                let (text, values) = removed.map_err(|problem| file.refused(problem))?;
                if values.is_empty() {
                    return Ok((Outcome::Unchanged, values));
                }
                file.set_text(&text);
                Ok((Outcome::Removed, values))
            }
            Content::Whole(text) => {
                let ours = record.map_or(&text, |record| &record.written);
                if file.bytes() == Some(ours.as_bytes()) {
                    file.set(None);
                    return Ok((Outcome::Restored, Vec::new()));
                }
                let is_users = record.is_none()
                    && command_of_plugin(file.text()?, self.agent).is_none()
                    && !file.text()?.contains("placed by `offcut install`");
                if is_users || file.bytes().is_none() {
                    return Ok((Outcome::Unchanged, Vec::new()));
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
        let file = AgentFile::read(&installed_path(self.agent, &self.scope)?)?;
        content::of(self)?.is_in(&file, self.agent)
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
    AgentFile::read(path)?.json()
}

/// Reads the text of a settings file; a missing one is empty.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    Ok(AgentFile::read(path)?.text()?.to_owned())
}
