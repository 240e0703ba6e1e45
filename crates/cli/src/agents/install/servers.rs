//! The MCP servers in an agent's settings, with `offcut mcp --` in front of them or without.

mod edit;
mod server;

use std::path::PathBuf;

use serde::Serialize;

use super::Installation;
use super::file::AgentFile;
use crate::agents::Agent;
use crate::failure::Failure;
use edit::TextEdit;
use server::{Server, ServerCommand, Spot};

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
    /// Names of the servers that have a URL in place of a command, or a command that is no text, and stay as they are.
    pub others: Vec<String>,
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
                None => &mut servers.others,
            };
            list.push(server.name);
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
    rewrite(agent, file, |_, command, text| {
        let (front, rest) = command.words.split_at(command.front());
        let is_bared = !front.is_empty() && is_taken(front);
        is_bared.then(|| (edit::unwrapping(text, command), rest.to_vec()))
    })
}

/// Puts `front`, a program and its arguments, in front of each server in `file` that is `chosen` by its number, and
/// has not Offcut there.
pub(super) fn put_in_front(
    agent: Agent,
    file: &mut AgentFile,
    front: &[String],
    chosen: impl Fn(usize) -> bool,
) -> Result<(), Failure> {
    let put = rewrite(agent, file, |nth, command, text| {
        let is_put = chosen(nth) && command.offcut().is_none();
        let words = || [front, &command.words].concat();
        is_put.then(|| (edit::wrapping(text, command, front), words()))
    });
    put.map(drop)
}

/// Changes the text of `file` where `change` gives edits for a server's command, with the words that it then has to
/// have. Returns true for each server that an installation had been put in front of.
fn rewrite(
    agent: Agent,
    file: &mut AgentFile,
    change: impl Fn(usize, &ServerCommand, &str) -> Option<(Vec<TextEdit>, Vec<String>)>,
) -> Result<Vec<bool>, Failure> {
    let servers = read(agent, file)?;
    let mut edits = Vec::new();
    let mut meant = Vec::new();
    let mut had_front = Vec::new();
    for (nth, Server { name, command }) in servers.into_iter().enumerate() {
        had_front.push(command.as_ref().is_some_and(|command| command.front() > 0));
        let words = match command {
            Some(command) => Some(match change(nth, &command, file.text()?) {
                Some((changes, words)) => {
                    edits.extend(changes);
                    words
                }
                None => command.words,
            }),
            None => None,
        };
        meant.push((name, words));
    }
    if !edits.is_empty() {
        let text = edit::applied(file.text()?, edits);
        file.set_text(&text);
        let found = read(agent, file)?.into_iter();
        let found = found.map(|server| (server.name, server.command.map(|one| one.words)));
        if !found.eq(meant) {
            return Err(file.refused(
                "a server's command is written in an unusual way; change `offcut mcp --` in front of it yourself",
            ));
        }
    }
    Ok(had_front)
}

/// Reads the servers in a file, whose text no error quotes.
fn read(agent: Agent, file: &AgentFile) -> Result<Vec<Server>, Failure> {
    let text = file.text()?;
    let keys: &[&[&str]] = match agent {
        Agent::Codex => &[&["mcp_servers"]],
        Agent::OpenCode => &[&["mcp"]],
        // Claude Code keeps servers of projects that are the user's own here too.
        _ => &[&["mcpServers"], &["projects", "*", "mcpServers"]],
    };
    let parsed = match agent {
        Agent::Codex => Spot::of_toml(text).map(Some),
        _ => Spot::of_json(text),
    };
    let mut servers = Vec::new();
    if let Some(parsed) = parsed.map_err(|problem| file.refused(problem))? {
        for keys in keys {
            parsed.collect(keys, text, &mut servers);
        }
    }
    Ok(servers)
}
