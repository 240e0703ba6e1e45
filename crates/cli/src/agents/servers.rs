//! Puts `offcut mcp` in front of the MCP servers in an agent's settings, and takes it out again, byte for
//! byte.

mod edit;
mod json_file;
mod place;
mod server;
mod toml_file;

use std::path::PathBuf;

use serde::Serialize;

use crate::agents::install::{AgentFile, InstallError, Installation, front_words};
use edit::{Wrapped, undone, wrapped};
use place::ServersFile;
use server::Server;

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
    pub fn wrap_servers(&self) -> Result<Option<Servers>, InstallError> {
        let front = front_words(self)?;
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
    pub fn unwrap_servers(&self) -> Result<Option<Servers>, InstallError> {
        self.change(|_, bare| Ok((bare.to_owned(), Vec::new())))
    }

    /// Looks for the servers in the agent's settings. `None` if Offcut knows no place where this agent
    /// names them.
    ///
    /// # Errors
    ///
    /// The settings can't be read.
    pub fn servers(&self) -> Result<Option<Servers>, InstallError> {
        let Some(place) = place::of(self)? else {
            return Ok(None);
        };
        let file = AgentFile::read(&place.path)?;
        looked(&place, file.text()?, false).map(Some)
    }

    /// Returns true if servers of the agent have Offcut in front by this user's record.
    ///
    /// # Errors
    ///
    /// The record can't be read.
    pub fn has_wrapped_servers(&self) -> Result<bool, InstallError> {
        let Some(place) = place::of(self)? else {
            return Ok(false);
        };
        Ok(!edit::read_record(&place)?.is_empty())
    }

    /// Takes back an earlier change of the servers, and makes another in its place.
    fn change(
        &self,
        new: impl FnOnce(&ServersFile, &str) -> Result<(String, Vec<Wrapped>), String>,
    ) -> Result<Option<Servers>, InstallError> {
        let Some(place) = place::of(self)? else {
            return Ok(None);
        };
        let refuse = |problem: String| InstallError::new(&place.path, problem);
        let file = AgentFile::read(&place.path)?;
        let text = file.text()?;
        let before = edit::read_record(&place)?;
        if file.bytes().is_none() {
            edit::write_record(&place, &[])?;
            return looked(&place, text, false).map(Some);
        }
        let servers = place.read(text).map_err(refuse)?;
        let (bare, all) = undone(text, &servers, &before);
        if !is_in_front(&all, &place.read(&bare).map_err(refuse)?, &servers) {
            return Err(refuse(unusual("take `offcut mcp --` out of it yourself")));
        }
        let (changed, record) = new(&place, &bare).map_err(refuse)?;
        if changed != text {
            // Both records hold until the file is changed: without one, a change could not be taken back.
            let both: Vec<Wrapped> = before.iter().chain(&record).cloned().collect();
            edit::write_record(&place, &both)?;
            file.replace(Some(file.marked(&changed).as_bytes()))?;
        }
        edit::write_record(&place, &record)?;
        looked(&place, &changed, changed != text).map(Some)
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

fn looked(place: &ServersFile, text: &str, is_changed: bool) -> Result<Servers, InstallError> {
    let found = place.read(text);
    let found = found.map_err(|problem| InstallError::new(&place.path, problem))?;
    let mut servers = Servers {
        path: place.path.clone(),
        is_changed,
        ..Servers::default()
    };
    for server in found {
        let list = match &server.command {
            Some(command) => match command.front() {
                Some(front) => {
                    servers.fronts.push(front.to_vec());
                    &mut servers.wrapped
                }
                None => &mut servers.bare,
            },
            None => &mut servers.remote,
        };
        list.extend(server.path.last().cloned());
    }
    Ok(servers)
}
