//! Puts `offcut mcp` in front of the MCP servers in an agent's settings, and takes it out again, byte for
//! byte.

mod edit;
mod json_file;
mod server;
mod toml_file;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::agents::Agent;
use crate::agents::install::{
    AgentFile, Installation, read_json, records, refused, words, write_json,
};
use crate::failure::Failure;
use crate::units;
use edit::{Wrapped, by_shape, undone, wrapped};
use server::{Server, ServerCommand};

/// The MCP servers in an agent's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Servers {
    /// The file, or the folder of several.
    pub path: PathBuf,
    /// Names of the servers with Offcut in front.
    pub wrapped: Vec<String>,
    /// For each of these, the words that run Offcut.
    #[serde(skip)]
    pub(crate) fronts: Vec<Vec<String>>,
    /// Names of the servers over stdio that do not.
    pub bare: Vec<String>,
    /// Names of the servers whose command or arguments are not texts, which stay as they are.
    pub odd: Vec<String>,
    /// Names of the servers that have a URL in place of a command, which stay as they are.
    pub remote: Vec<String>,
    /// True if the file was changed.
    pub is_changed: bool,
}

impl Installation {
    /// Puts `offcut mcp` in front of the servers over stdio that the agent's settings name. A second
    /// time, nothing changes. `None` if Offcut knows no place where this agent names servers.
    ///
    /// # Errors
    ///
    /// The settings can't be read or changed. They are then unchanged.
    pub fn wrap_servers(&self) -> Result<Option<Servers>, Failure> {
        let front = words(self, ["mcp", "--"])?;
        self.change(None, |place, bare| {
            let servers = place.read(bare)?;
            let (text, all) = wrapped(bare, &servers, &front);
            match is_in_front(&all, &servers, &place.read(&text)?) {
                true => Ok((text, all)),
                false => Err(unusual("write `offcut mcp --` in front of it yourself")),
            }
        })
    }

    /// Takes `offcut mcp` out of the agent's settings, where [`wrap_servers`](Self::wrap_servers) has
    /// put it. What others have changed since stays. `None` if Offcut knows no place where this agent names
    /// servers.
    ///
    /// # Errors
    ///
    /// The settings can't be read or changed. They are then unchanged.
    pub fn unwrap_servers(&self) -> Result<Option<Servers>, Failure> {
        self.change(None, |_, bare| Ok((bare.to_owned(), Vec::new())))
    }

    /// Does the same without a record, for all servers whose commands are as [`wrap_servers`](Self::wrap_servers) would
    /// write them.
    ///
    /// # Errors
    ///
    /// The settings can't be read or changed. They are then unchanged.
    pub fn unwrap_servers_by_shape(&self) -> Result<Option<Servers>, Failure> {
        let front = words(self, ["mcp", "--"])?;
        self.change(Some(&front), |_, bare| Ok((bare.to_owned(), Vec::new())))
    }

    /// Looks for the servers in the agent's settings. `None` if Offcut knows no place where this agent
    /// names them.
    ///
    /// # Errors
    ///
    /// The settings can't be read.
    pub fn servers(&self) -> Result<Option<Servers>, Failure> {
        let places = ServersFile::all(self)?;
        let all = places.iter().map(|place| {
            let file = AgentFile::read(&place.path)?;
            place.looked(file.text()?, false)
        });
        Ok(joined(all.collect::<Result<_, _>>()?))
    }

    /// Returns true if servers of the agent have Offcut in front by this user's record.
    ///
    /// # Errors
    ///
    /// The record can't be read.
    pub fn has_wrapped_servers(&self) -> Result<bool, Failure> {
        let places = ServersFile::all(self)?;
        let records = places.iter().map(ServersFile::record);
        let records: Vec<_> = records.collect::<Result<_, _>>()?;
        Ok(records.iter().any(|record| !record.is_empty()))
    }

    /// Takes back an earlier change of the servers, and makes another in its place. Without a record, the words in
    /// `front` tell what was changed.
    fn change(
        &self,
        front: Option<&[String]>,
        new: impl Fn(&ServersFile, &str) -> Result<(String, Vec<Wrapped>), String>,
    ) -> Result<Option<Servers>, Failure> {
        let places = ServersFile::all(self)?;
        let changes = places.iter().map(|place| place.change(front, &new));
        let changes: Vec<_> = changes.collect::<Result<_, _>>()?;
        // If one of several files can't be changed, the others stay too.
        for change in changes.iter().filter(|change| change.servers.is_changed) {
            change.file.expect_writable()?;
        }
        let changed = changes.into_iter().map(ServersChange::make);
        Ok(joined(changed.collect::<Result<_, _>>()?))
    }
}

/// The servers of all files; `None` if there is none.
fn joined(all: Vec<Servers>) -> Option<Servers> {
    all.into_iter().reduce(|mut one, other| {
        one.path.pop();
        one.wrapped.extend(other.wrapped);
        one.fronts.extend(other.fronts);
        one.bare.extend(other.bare);
        one.odd.extend(other.odd);
        one.remote.extend(other.remote);
        one.is_changed |= other.is_changed;
        one
    })
}

/// Returns true if the words of these changes are all that `after` has more than `before`: a new text has to mean what
/// was meant.
fn is_in_front(changes: &[Wrapped], before: &[Server], after: &[Server]) -> bool {
    let is_right = |(before, after): (&Server, &Server)| {
        let words = |server: &Server| server.command.as_ref().map(|one| one.words.clone());
        let change = changes.iter().find(|one| one.path == before.path);
        let front = change.map_or(&[][..], |change| &change.front);
        let expected = words(before).map(|words| [front, &words].concat());
        before.path == after.path && expected == words(after)
    };
    before.len() == after.len() && before.iter().zip(after).all(is_right)
}

fn unusual(cure: &str) -> String {
    format!("a server's command is written in an unusual way; {cure}")
}

/// A file with MCP servers, and the record of its changes.
#[derive(Debug)]
struct ServersFile {
    agent: Agent,
    path: PathBuf,
    record: PathBuf,
}

/// A change of one file that is still to be made.
struct ServersChange<'p> {
    place: &'p ServersFile,
    file: AgentFile,
    /// The file's new text.
    text: String,
    /// The servers in it.
    servers: Servers,
    /// The record as it is.
    known: Vec<Wrapped>,
    /// The record after the change.
    record: Vec<Wrapped>,
}

impl ServersChange<'_> {
    fn make(self) -> Result<Servers, Failure> {
        if self.servers.is_changed {
            // Both records hold until the file is changed: without one, a change could not be taken back.
            let both = [&self.known[..], &self.record].concat();
            self.place.write_record(&both)?;
            self.file.replace(Some(self.text.as_bytes()))?;
        }
        self.place.write_record(&self.record)?;
        Ok(self.servers)
    }
}

/// The changes of one file.
#[derive(Debug, Serialize, Deserialize)]
struct ServersRecord {
    file: PathBuf,
    servers: Vec<Wrapped>,
}

impl ServersFile {
    /// The files of an installation; none if the agent has none.
    fn all(installation: &Installation) -> Result<Vec<Self>, Failure> {
        let agent = installation.agent;
        let Some((of_user, of_project)) = agent.facts().servers else {
            return Ok(Vec::new());
        };
        let path = installation
            .scope
            .place(agent, of_user.path(), of_project)?;
        let mut paths = vec![path.clone()];
        if agent == Agent::OpenCode {
            // Its settings may have one of two names, or both.
            let names = ["opencode.jsonc", "opencode.json"];
            paths = names.map(|name| path.join(name)).into();
            paths.retain(|path| path.exists());
            if paths.is_empty() {
                paths.push(path.join("opencode.json"));
            }
        }
        let all = paths.into_iter().map(|path| Self::at(installation, path));
        Ok(all.collect())
    }

    fn at(installation: &Installation, path: PathBuf) -> Self {
        let agent = installation.agent;
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        let name = format!("{}.json", units::hex(&digest[..12]));
        let record = records(&installation.home, agent)
            .join("servers")
            .join(name);
        Self {
            agent,
            path,
            record,
        }
    }

    /// The change that takes back an earlier one, which is known by the record or by words, and makes another in its
    /// place.
    fn change(
        &self,
        front: Option<&[String]>,
        new: impl Fn(&Self, &str) -> Result<(String, Vec<Wrapped>), String>,
    ) -> Result<ServersChange<'_>, Failure> {
        let refuse = |problem: String| refused(&self.path, problem);
        let file = AgentFile::read(&self.path)?;
        let text = file.text()?;
        let known = self.record()?;
        let servers = self.read(text).map_err(refuse)?;
        let before = match front {
            Some(front) => by_shape(&servers, front),
            None => known.clone(),
        };
        let (bare, all) = undone(text, &servers, &before);
        if !is_in_front(&all, &self.read(&bare).map_err(refuse)?, &servers) {
            return Err(refuse(unusual("take `offcut mcp --` out of it yourself")));
        }
        let (changed, record) = new(self, &bare).map_err(refuse)?;
        Ok(ServersChange {
            place: self,
            servers: self.looked(&changed, changed != text)?,
            text: file.marked(&changed),
            known,
            record,
            file,
        })
    }

    /// Reads the servers in the file's text.
    ///
    /// # Errors
    ///
    /// The problem with the text, which is not quoted.
    fn read(&self, text: &str) -> Result<Vec<Server>, String> {
        match self.agent {
            Agent::Codex => toml_file::read(text),
            Agent::OpenCode => json_file::read(text, &[&["mcp"]]),
            // Claude Code keeps servers of projects that are the user's own here too.
            _ => json_file::read(text, &[&["mcpServers"], &["projects", "*", "mcpServers"]]),
        }
    }

    fn looked(&self, text: &str, is_changed: bool) -> Result<Servers, Failure> {
        let found = self.read(text);
        let found = found.map_err(|problem| refused(&self.path, problem))?;
        let mut servers = Servers {
            path: self.path.clone(),
            is_changed,
            ..Servers::default()
        };
        for server in found {
            let list = match server.command.as_ref().map(ServerCommand::front) {
                Some(Some(front)) => {
                    servers.fronts.push(front.to_vec());
                    &mut servers.wrapped
                }
                Some(None) => &mut servers.bare,
                None if server.is_odd => &mut servers.odd,
                None => &mut servers.remote,
            };
            list.extend(server.path.last().cloned());
        }
        Ok(servers)
    }

    /// Reads the changes of the file. None if there is no record.
    fn record(&self) -> Result<Vec<Wrapped>, Failure> {
        let rest = "`offcut mcp --` from the agent's MCP servers";
        let record = read_json::<ServersRecord>(&self.record, rest)?;
        Ok(record.map_or_else(Vec::new, |record| record.servers))
    }

    /// Writes the changes of the file; without any, the record is removed.
    fn write_record(&self, servers: &[Wrapped]) -> Result<(), Failure> {
        let record = (!servers.is_empty()).then(|| ServersRecord {
            file: self.path.clone(),
            servers: servers.to_vec(),
        });
        write_json(&self.record, record.as_ref())
    }
}
