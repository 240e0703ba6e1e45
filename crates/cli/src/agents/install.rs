//! Puts Offcut around an agent's tools by the agent's own settings, and takes it out again, from all files or from none.

mod content;
mod file;
mod installation;
mod jsonc;
mod record;
mod servers;

use std::fs::File;
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
use installation::Goal;
use jsonc::Addition;
use record::Tracked;
use servers::Front;

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
        let of_servers = servers::paths(self)?;
        // One file may have both.
        let first = usize::from(!of_servers.contains(&path));
        let folder = records(&self.home, self.agent);
        let mut files = vec![Tracked::read(&folder, &path)?];
        for other in of_servers.iter().filter(|other| **other != path) {
            match Tracked::read(&folder, other) {
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
        let mut has_servers = goal == Goal::InstallWithServers;
        let mut done = Vec::new();
        for (nth, file) in files.iter_mut().enumerate() {
            let fronts = match nth < first {
                true => Vec::new(),
                false => servers::fronts(self.agent, &file.file, goal, &front)?,
            };
            has_servers |= fronts.iter().any(|front| !front.old.is_empty());
            let content = match nth {
                0 => content::of(self)?,
                _ => Content::Values(Vec::new()),
            };
            done.push(match goal {
                Goal::Uninstall => self.take_out(file, &content, &fronts)?,
                _ => self.put_in(file, content, &fronts)?,
            });
        }
        let servers = match has_servers {
            true => servers::found(self.agent, files[first..].iter().map(|file| &file.file))?,
            false => None,
        };
        // Without its record, a change could not be taken back, so the record outlives it.
        let records = files.iter().flat_map(Tracked::kept);
        let changed = files.iter().map(|file| &file.file);
        let all: Vec<&AgentFile> = match goal {
            Goal::Uninstall => changed.chain(records).collect(),
            _ => records.chain(changed).collect(),
        };
        file::write_all(&all)?;
        let backup = files[0]
            .original()
            .map(|_| files[0].backup.path().to_owned());
        let (outcome, values) = done.swap_remove(0);
        Ok(Changed {
            path,
            outcome,
            backup,
            values,
            servers,
        })
    }

    /// Puts `content` and `fronts` into a file, in place of those of an earlier installation.
    fn put_in(
        &self,
        file: &mut Tracked,
        content: Content,
        fronts: &[Front],
    ) -> Result<Done, Failure> {
        content::expect_name(&self.program)?;
        Fs::open(&self.store).map_err(because(&self.store, "the store can't be used"))?;
        let values = content.in_words();
        let old = file.record.as_ref().map(|record| &record.additions);
        let is_wanted = old.is_none_or(|old| content.has(old));
        if content.is_in(&file.file, self.agent)?
            && is_wanted
            && fronts.iter().all(|front| front.old == front.new)
        {
            return Ok((Outcome::Unchanged, values));
        }
        let outcome = match file.file.bytes() {
            None => Outcome::Created,
            Some(_) => Outcome::Added,
        };
        self.take_out(file, &content, &[])?;
        let original = file.file.bytes().map(<[u8]>::to_vec);
        let additions = match content {
            Content::Values(mut additions) => {
                // Values that were there before are not ours to remove.
                let before = file.file.json()?;
                additions.retain(|addition| !addition.is_in(&before));
                let added = jsonc::add(file.file.text()?, &additions);
                let added = added.map_err(|problem| file.file.refused(problem))?;
                file.file.set_text(&added);
                additions
            }
            Content::Whole(text) => {
                file.file.set(Some(text.into_bytes()));
                Vec::new()
            }
        };
        servers::set(self.agent, &mut file.file, fronts)?;
        file.keep(additions, original);
        Ok((outcome, values))
    }

    /// Takes Offcut out of a file: the values of `content`, or those of its record, and what is in front of servers.
    fn take_out(
        &self,
        file: &mut Tracked,
        content: &Content,
        fronts: &[Front],
    ) -> Result<Done, Failure> {
        let done = match content {
            _ if file.undo() => (Outcome::Restored, Vec::new()),
            Content::Values(values) => self.take_values_out(file, values)?,
            Content::Whole(text) => self.take_plugin_out(file, text)?,
        };
        servers::set(self.agent, &mut file.file, fronts)?;
        file.forget();
        Ok(done)
    }

    fn take_values_out(&self, file: &mut Tracked, wanted: &[Addition]) -> Result<Done, Failure> {
        let record = file.record.as_ref();
        let additions = record.map_or(wanted, |record| &record.additions);
        if additions.is_empty() {
            return Ok((Outcome::Unchanged, Vec::new()));
        }
        let is_ours = |command: &str| content::is_ours(command, self.agent);
        let removed = jsonc::remove(file.file.text()?, additions, is_ours);
        let (text, values) = removed.map_err(|problem| file.file.refused(problem))?;
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
            return Ok((Outcome::Restored, Vec::new()));
        }
        let found = file.file.text()?;
        let is_users = record.is_none()
            && command_of_plugin(found, self.agent).is_none()
            && !found.contains("placed by `offcut install`");
        match is_users || file.file.bytes().is_none() {
            true => Ok((Outcome::Unchanged, Vec::new())),
            false => Err(file.file.refused(
                "it was changed after Offcut placed it, or its record is gone; remove it if you do not need it, and try again",
            )),
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
