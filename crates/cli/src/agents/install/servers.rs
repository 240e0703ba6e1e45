//! The MCP servers in an agent's settings, with `offcut mcp --` in front of them or without.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::{CstNode, CstObject, CstRootNode};
use serde::Serialize;
use serde_json::Value;

use super::file::AgentFile;
use super::installation::{Goal, Installation};
use super::jsonc;
use crate::agents::Agent;
use crate::failure::Failure;

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
    /// Names of the servers that have a URL in place of a command, or a command that is not a text, and stay as they are.
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
        let files = files.collect::<Result<Vec<_>, _>>()?;
        found(self.agent, files.iter())
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
    Ok(match agent {
        // Its settings may have one of two names, or both.
        Agent::OpenCode => {
            Vec::from(["opencode.jsonc", "opencode.json"].map(|name| path.join(name)))
        }
        _ => vec![path],
    })
}

/// The servers in `files`; `None` without files.
pub(super) fn found<'f>(
    agent: Agent,
    files: impl ExactSizeIterator<Item = &'f AgentFile>,
) -> Result<Option<Servers>, Failure> {
    let (mut servers, count) = (Servers::default(), files.len());
    for file in files {
        servers.path = file.path().to_owned();
        servers.is_changed |= file.is_changed();
        for mut server in read(agent, file)?.1 {
            let list = match server.words.as_deref().map(offcut) {
                Some(Some(words)) => {
                    servers.fronts.push(words.to_vec());
                    &mut servers.wrapped
                }
                Some(None) => &mut servers.bare,
                None => &mut servers.others,
            };
            list.extend(server.path.pop());
        }
    }
    if count > 1 {
        servers.path.pop();
    }
    Ok((count > 0).then_some(servers))
}

/// The words in front of a server that an installation finds, and those that it leaves.
pub(super) struct Front {
    path: Vec<String>,
    pub(super) old: Vec<String>,
    pub(super) new: Vec<String>,
}

/// The words that an installation finds in front of the servers in `file`, and leaves there: `front`, where it changes them.
pub(super) fn fronts(
    agent: Agent,
    file: &AgentFile,
    goal: Goal,
    front: &[String],
) -> Result<Vec<Front>, Failure> {
    if goal != Goal::InstallWithServers && !file.text()?.contains("offcut") {
        return Ok(Vec::new());
    }
    let is_replaced = |old: &[String]| match goal {
        Goal::Uninstall => true,
        Goal::InstallWithServers => old != front,
        // One that names no path was put there by the user.
        Goal::Install => {
            let [found, new] = [old, front].map(|words| words.iter().rev().nth(2));
            found.is_some_and(|program| Path::new(program).is_absolute()) && found != new
        }
    };
    let of_server = |server: Server| {
        let words = server.words?;
        let old = words[..front_of(&words)].to_vec();
        // One with options of its own was written by the user.
        let is_kept = old.is_empty() && offcut(&words).is_some();
        let new = match !is_kept && is_replaced(&old) {
            true => front.to_vec(),
            false => old.clone(),
        };
        let path = server.path;
        Some(Front { path, old, new })
    };
    let servers = read(agent, file)?.1.into_iter();
    Ok(servers.filter_map(of_server).collect())
}

/// Puts the new words of `fronts` in front of the servers in `file`, in place of any others.
pub(super) fn set(agent: Agent, file: &mut AgentFile, fronts: &[Front]) -> Result<(), Failure> {
    if fronts.is_empty() {
        return Ok(());
    }
    let (root, servers) = read(agent, file)?;
    for Server {
        path,
        object,
        words,
    } in servers
    {
        let Some(front) = fronts.iter().find(|front| front.path == path) else {
            continue;
        };
        let words = words.unwrap_or_default();
        let old = front_of(&words);
        if words[..old] != front.new[..] {
            let rest = &words[old..];
            let done = rewrite(&object, old, &front.new, rest);
            done.map_err(|problem| file.refused(problem))?;
        }
    }
    let text = root.to_string();
    if text != file.text()? {
        file.set_text(&text);
    }
    Ok(())
}

/// Puts `front` in the place of the first `old` words of a server's command, before the `rest`.
fn rewrite(
    server: &CstObject,
    old: usize,
    front: &[String],
    rest: &[String],
) -> Result<(), String> {
    let command = jsonc::property(server, "command")?.ok_or("a server has no command")?;
    if let Some(list) = command.array_value() {
        let elements = list.elements().into_iter();
        elements.take(old).for_each(CstNode::remove);
        for (at, word) in front.iter().enumerate() {
            list.insert(at, word.as_str().into());
        }
        return Ok(());
    }
    let had = jsonc::property(server, "args")?;
    let list = server.array_value_or_set("args");
    // Of the old words, the first is the command; the one after the last becomes it.
    let elements = list.elements().into_iter();
    elements.take(old).for_each(CstNode::remove);
    let (program, arguments) = match front.split_first() {
        Some((program, arguments)) => (program, [arguments, &rest[..1]].concat()),
        None => (&rest[0], Vec::new()),
    };
    command.set_value(program.as_str().into());
    for (at, word) in arguments.iter().enumerate() {
        list.insert(at, word.as_str().into());
    }
    if let Some(had) = had.filter(|_| list.elements().is_empty()) {
        had.remove();
    }
    Ok(())
}

/// The words that run Offcut, if it is in front of a server.
fn offcut(words: &[String]) -> Option<&[String]> {
    let at = match words {
        [env, home, ..] if env == "env" && home.starts_with("OFFCUT_HOME=") => 2,
        _ => 0,
    };
    let [program, mcp, ..] = words.get(at..)? else {
        return None;
    };
    let name = program.rsplit('/').next().unwrap_or_default();
    (name.starts_with("offcut") && mcp == "mcp").then(|| &words[..=at])
}

/// The number of words that an installation has put in front of a server: those that run Offcut, `mcp` and `--`.
/// One with others between these was written by the user.
fn front_of(words: &[String]) -> usize {
    let after = offcut(words).map_or(0, |words| words.len() + 1);
    match &words[after..] {
        [dashes, _, ..] if after > 0 && dashes == "--" => after + 1,
        _ => 0,
    }
}

/// A server as a file has it.
struct Server {
    /// The names of the objects that lead to it, and its own.
    path: Vec<String>,
    object: CstObject,
    /// The program and its arguments; `None` if they are not texts.
    words: Option<Vec<String>>,
}

/// Reads the servers in a file, whose text no error quotes.
fn read(agent: Agent, file: &AgentFile) -> Result<(CstRootNode, Vec<Server>), Failure> {
    let keys: &[&[&str]] = match agent {
        Agent::OpenCode => &[&["mcp"]],
        // Claude Code keeps servers of projects that are the user's own here too.
        _ => &[&["mcpServers"], &["projects", "*", "mcpServers"]],
    };
    let root = jsonc::root(file.text()?).map_err(|problem| file.refused(problem))?;
    let mut servers = Vec::new();
    for (object, keys) in root
        .object_value()
        .iter()
        .flat_map(|root| keys.iter().map(move |keys| (root, keys)))
    {
        collect(object, keys, &mut Vec::new(), &mut servers);
    }
    Ok((root, servers))
}

/// Adds the servers below `keys`, in which `*` stands for any name, to `all`.
fn collect(object: &CstObject, keys: &[&str], path: &mut Vec<String>, all: &mut Vec<Server>) {
    for property in object.properties() {
        let (Some(name), Some(object)) = (property.decoded_name(), property.object_value()) else {
            continue;
        };
        path.push(name);
        match keys.split_first() {
            None => all.extend(server(path, object)),
            Some((key, rest)) if *key == "*" || Some(*key) == path.last().map(String::as_str) => {
                collect(&object, rest, path, all);
            }
            Some(_) => {}
        }
        path.pop();
    }
}

fn server(path: &[String], object: CstObject) -> Option<Server> {
    let known = ["command", "url", "httpUrl", "serverUrl"];
    let is_server = known.iter().any(|name| object.get(name).is_some());
    let list = |value: &Value| {
        let words = value.as_array()?.iter();
        let words = words.map(|word| Some(word.as_str()?.to_owned()));
        words.collect::<Option<Vec<_>>>()
    };
    let words = object.to_serde_value().and_then(|server| {
        let command = &server["command"];
        let words = match (command.as_str(), server.get("args")) {
            (None, _) => list(command)?,
            (Some(command), None) => vec![command.to_owned()],
            (Some(command), Some(args)) => [vec![command.to_owned()], list(args)?].concat(),
        };
        (!words.is_empty()).then_some(words)
    });
    let path = path.to_vec();
    is_server.then_some(Server {
        path,
        object,
        words,
    })
}
