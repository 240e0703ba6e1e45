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
use edit::{Wrapped, undone, wrapped};
use server::{Server, ServerCommand};

/// The MCP servers in one file of an agent's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Servers {
    /// The file.
    pub path: PathBuf,
    /// Names of the servers with Offcut in front.
    pub wrapped: Vec<String>,
    /// For each of these, the words that run Offcut.
    #[serde(skip)]
    pub(crate) fronts: Vec<Vec<String>>,
    /// Names of the servers over stdio that do not.
    pub bare: Vec<String>,
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
        self.change(|place, bare| {
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
        self.change(|_, bare| Ok((bare.to_owned(), Vec::new())))
    }

    /// Looks for the servers in the agent's settings. `None` if Offcut knows no place where this agent
    /// names them.
    ///
    /// # Errors
    ///
    /// The settings can't be read.
    pub fn servers(&self) -> Result<Option<Servers>, Failure> {
        let Some(place) = ServersFile::of(self)? else {
            return Ok(None);
        };
        let file = AgentFile::read(&place.path)?;
        place.looked(file.text()?, false).map(Some)
    }

    /// Returns true if servers of the agent have Offcut in front by this user's record.
    ///
    /// # Errors
    ///
    /// The record can't be read.
    pub fn has_wrapped_servers(&self) -> Result<bool, Failure> {
        match ServersFile::of(self)? {
            Some(place) => Ok(!place.record()?.is_empty()),
            None => Ok(false),
        }
    }

    /// Takes back an earlier change of the servers, and makes another in its place.
    fn change(
        &self,
        new: impl FnOnce(&ServersFile, &str) -> Result<(String, Vec<Wrapped>), String>,
    ) -> Result<Option<Servers>, Failure> {
        let Some(place) = ServersFile::of(self)? else {
            return Ok(None);
        };
        let refuse = |problem: String| refused(&place.path, problem);
        let file = AgentFile::read(&place.path)?;
        let text = file.text()?;
        let before = place.record()?;
        if file.bytes().is_none() {
            place.write_record(&[])?;
            return place.looked(text, false).map(Some);
        }
        let servers = place.read(text).map_err(refuse)?;
        let (bare, all) = undone(text, &servers, &before);
        if !is_in_front(&all, &place.read(&bare).map_err(refuse)?, &servers) {
            return Err(refuse(unusual("take `offcut mcp --` out of it yourself")));
        }
        let (changed, record) = new(&place, &bare).map_err(refuse)?;
        if changed != text {
            // Both records hold until the file is changed: without one, a change could not be taken back.
            place.write_record(&[&before[..], &record].concat())?;
            file.replace(Some(file.marked(&changed).as_bytes()))?;
        }
        place.write_record(&record)?;
        place.looked(&changed, changed != text).map(Some)
    }
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

/// The changes of one file.
#[derive(Debug, Serialize, Deserialize)]
struct ServersRecord {
    file: PathBuf,
    servers: Vec<Wrapped>,
}

impl ServersFile {
    /// The file of an installation; `None` if the agent has none.
    fn of(installation: &Installation) -> Result<Option<Self>, Failure> {
        let agent = installation.agent;
        let Some((of_user, of_project)) = agent.facts().servers else {
            return Ok(None);
        };
        let mut path = installation
            .scope
            .place(agent, of_user.path(), of_project)?;
        if agent == Agent::OpenCode {
            // Its settings may have one of two names.
            let [with_comments, without] =
                ["opencode.jsonc", "opencode.json"].map(|name| path.join(name));
            path = if with_comments.exists() {
                with_comments
            } else {
                without
            };
        }
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        let name = format!("{}.json", units::hex(&digest[..12]));
        let record = records(&installation.home, agent)
            .join("servers")
            .join(name);
        Ok(Some(Self {
            agent,
            path,
            record,
        }))
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
