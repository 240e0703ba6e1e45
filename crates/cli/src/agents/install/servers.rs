//! The MCP servers in an agent's settings, with `offcut mcp --` in front of them or without.

mod edit;
mod json_file;
mod server;
mod toml_file;

use std::path::PathBuf;

use serde::Serialize;

use super::error::refused;
use super::file::AgentFile;
use super::installation::Installation;
use crate::agents::Agent;
use crate::failure::Failure;
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
    /// Looks for the servers in the agent's settings. `None` if Offcut knows no place where this agent
    /// names them.
    ///
    /// # Errors
    ///
    /// The settings can't be read.
    pub fn servers(&self) -> Result<Option<Servers>, Failure> {
        let files = paths(self)?.into_iter().map(|path| AgentFile::read(&path));
        found(self.agent, &files.collect::<Result<Vec<_>, _>>()?)
    }
}

/// The files in which an agent names servers; none if Offcut knows no such place.
pub(super) fn paths(installation: &Installation) -> Result<Vec<PathBuf>, Failure> {
    let agent = installation.agent;
    let Some((of_user, of_project)) = agent.facts().servers else {
        return Ok(Vec::new());
    };
    let path = installation
        .scope
        .place(agent, of_user.path(), of_project)?;
    if agent != Agent::OpenCode {
        return Ok(vec![path]);
    }
    // Its settings may have one of two names, or both.
    let mut paths = ["opencode.jsonc", "opencode.json"]
        .map(|name| path.join(name))
        .to_vec();
    if paths.iter().any(|path| path.exists()) {
        paths.retain(|path| path.exists());
    } else {
        paths.remove(0);
    }
    Ok(paths)
}

/// The servers in `files`; `None` without files.
pub(super) fn found(agent: Agent, files: &[AgentFile]) -> Result<Option<Servers>, Failure> {
    let mut servers = Servers::default();
    for file in files {
        servers.path = file.path().to_owned();
        servers.is_changed |= file.is_changed();
        for server in read(agent, file)? {
            let list = match server.command.as_ref().map(ServerCommand::offcut) {
                Some(Some(words)) => {
                    servers.fronts.push(words.to_vec());
                    &mut servers.wrapped
                }
                Some(None) => &mut servers.bare,
                None if server.is_odd => &mut servers.odd,
                None => &mut servers.remote,
            };
            list.extend(server.path.last().cloned());
        }
    }
    if files.len() > 1 {
        servers.path.pop();
    }
    Ok((!files.is_empty()).then_some(servers))
}

/// Takes what installations put in front of the servers in `file` out of it, where `is_taken` is true of these words.
/// Returns true for each server that had any.
pub(super) fn take_out(
    agent: Agent,
    file: &mut AgentFile,
    is_taken: impl Fn(&[String]) -> bool,
) -> Result<Vec<bool>, Failure> {
    if !file.text()?.contains("offcut") {
        return Ok(Vec::new());
    }
    let servers = read(agent, file)?;
    let is_bared = |command: &ServerCommand| {
        command.front() > 0 && is_taken(&command.words[..command.front()])
    };
    let text = edit::bare(file.text()?, &servers, is_bared);
    edit(agent, file, &text, &servers, |_, command| {
        let front = if is_bared(command) {
            command.front()
        } else {
            0
        };
        command.words[front..].to_vec()
    })?;
    let commands = servers.iter().map(|server| &server.command);
    Ok(commands
        .map(|command| command.as_ref().is_some_and(|one| one.front() > 0))
        .collect())
}

/// Puts `front`, a program and its arguments, in front of each server in `file` that is `chosen` by its number, and
/// has not Offcut there.
pub(super) fn put_in_front(
    agent: Agent,
    file: &mut AgentFile,
    front: &[String],
    chosen: impl Fn(usize) -> bool,
) -> Result<(), Failure> {
    let servers = read(agent, file)?;
    let is_put = |nth, command: &ServerCommand| chosen(nth) && command.offcut().is_none();
    let text = edit::wrapped(file.text()?, &servers, front, is_put);
    edit(agent, file, &text, &servers, |nth, command| {
        let front = if is_put(nth, command) { front } else { &[] };
        [front, &command.words].concat()
    })
}

/// Gives `file` a new text, in which the servers' words have to be those that are meant.
fn edit(
    agent: Agent,
    file: &mut AgentFile,
    text: &str,
    servers: &[Server],
    meant: impl Fn(usize, &ServerCommand) -> Vec<String>,
) -> Result<(), Failure> {
    if text == file.text()? {
        return Ok(());
    }
    file.set_text(text);
    let found = read(agent, file)?;
    let is_meant = |(nth, (before, after)): (usize, (&Server, &Server))| {
        let meant = before.command.as_ref().map(|command| meant(nth, command));
        before.path == after.path && meant.as_ref() == after.command.as_ref().map(|one| &one.words)
    };
    let is_right =
        servers.len() == found.len() && servers.iter().zip(&found).enumerate().all(is_meant);
    match is_right {
        true => Ok(()),
        false => Err(file.refused(
            "a server's command is written in an unusual way; change `offcut mcp --` in front of it yourself",
        )),
    }
}

/// Reads the servers in a file, whose text no error quotes.
fn read(agent: Agent, file: &AgentFile) -> Result<Vec<Server>, Failure> {
    let text = file.text()?;
    let servers = match agent {
        Agent::Codex => toml_file::read(text),
        Agent::OpenCode => json_file::read(text, &[&["mcp"]]),
        // Claude Code keeps servers of projects that are the user's own here too.
        _ => json_file::read(text, &[&["mcpServers"], &["projects", "*", "mcpServers"]]),
    };
    servers.map_err(|problem| refused(file.path(), problem))
}
