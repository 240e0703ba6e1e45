//! Changes of a text by which servers get Offcut in front, and their records.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::place::ServersFile;
use super::server::{Args, Command, Server};
use crate::install::{AgentFile, InstallError};

/// The changes of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Wrapped {
    /// Names of the objects that lead to it, and its own.
    pub(super) path: Vec<String>,
    /// The change at the place of the command.
    command: Edit,
    /// The change at the place of the arguments, if they have one of their own.
    args: Option<Edit>,
}

/// A change of the text at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Edit {
    original: String,
    written: String,
}

/// The changes of one file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    file: PathBuf,
    servers: Vec<Wrapped>,
}

/// The text in which all servers over stdio have `front`, a program and its arguments, in front, and the
/// changes.
pub(super) fn wrapped(text: &str, servers: &[Server], front: &[String]) -> (String, Vec<Wrapped>) {
    let mut all = Vec::new();
    let mut edits = Vec::new();
    for server in servers {
        let Some(command) = server.command.as_ref().filter(|one| one.front().is_none()) else {
            continue;
        };
        let (first, second) = edits_of(text, command, front);
        edits.push((command.start, first.clone()));
        if let (Args::List { start, .. }, Some(second)) = (&command.args, &second) {
            edits.push((*start, second.clone()));
        }
        all.push(Wrapped {
            path: server.path.clone(),
            command: first,
            args: second,
        });
    }
    (applied(text, edits), all)
}

/// The changes that put words in front of a command.
fn edits_of(text: &str, command: &Command, front: &[String]) -> (Edit, Option<Edit>) {
    // A string of JSON is one of TOML too.
    let quoted = |word: &String| serde_json::Value::from(word.as_str()).to_string();
    let program = front.first().map(quoted).unwrap_or_default();
    let words: String = front
        .iter()
        .skip(1)
        .map(|word| quoted(word) + ", ")
        .collect();
    let original = text[command.start..command.end].to_owned();
    let edit = |original: &str, written: String| Edit {
        original: original.to_owned(),
        written,
    };
    match command.args {
        Args::Inside => (edit("[", format!("[{program}, {words}")), None),
        Args::Missing { key } => {
            let written = format!("{program}{key}[{words}{original}]");
            (edit(&original, written), None)
        }
        Args::List { is_empty, .. } => {
            let comma = if is_empty { "" } else { ", " };
            let args = edit("[", format!("[{words}{original}{comma}"));
            (edit(&original, program), Some(args))
        }
    }
}

/// The text without the changes of a record. A server that others have changed since stays as it is.
pub(super) fn undone(text: &str, servers: &[Server], record: &[Wrapped]) -> String {
    let mut edits: Vec<(usize, Edit)> = Vec::new();
    for one in record {
        let server = servers.iter().find(|server| server.path == one.path);
        let Some(command) = server.and_then(|server| server.command.as_ref()) else {
            continue;
        };
        let args = match (&one.args, &command.args) {
            (None, _) => None,
            (Some(args), Args::List { start, .. }) => Some((*start, args.clone())),
            (Some(_), _) => continue,
        };
        let both: Vec<(usize, Edit)> = [(command.start, one.command.clone())]
            .into_iter()
            .chain(args)
            .collect();
        let is_as_written = |(at, edit): &(usize, Edit)| {
            let is_new = edits.iter().all(|(other, _)| other != at);
            is_new && text[*at..].starts_with(&edit.written)
        };
        if both.iter().all(is_as_written) {
            let back = both.into_iter().map(|(at, edit)| {
                let (original, written) = (edit.written, edit.original);
                (at, Edit { original, written })
            });
            edits.extend(back);
        }
    }
    applied(text, edits)
}

fn applied(text: &str, mut edits: Vec<(usize, Edit)>) -> String {
    let mut text = text.to_owned();
    // From the last to the first, so that places stay.
    edits.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, edit) in edits {
        text.replace_range(at..at + edit.original.len(), &edit.written);
    }
    text
}

/// Reads the changes of a file. None if there is no record.
pub(super) fn read_record(place: &ServersFile) -> Result<Vec<Wrapped>, InstallError> {
    let file = AgentFile::read(&place.record)?;
    let Some(bytes) = file.bytes() else {
        return Ok(Vec::new());
    };
    let record: Record = serde_json::from_slice(bytes).map_err(|error| {
        let problem = "it is damaged; remove it, and `offcut mcp --` from the agent's MCP servers";
        InstallError::because(&place.record, problem, error)
    })?;
    Ok(record.servers)
}

/// Writes the changes of a file; without any, the record is removed.
pub(super) fn write_record(place: &ServersFile, servers: &[Wrapped]) -> Result<(), InstallError> {
    let file = AgentFile::read(&place.record)?;
    if servers.is_empty() {
        return file.replace(None);
    }
    let record = Record {
        file: place.path.clone(),
        servers: servers.to_vec(),
    };
    let text = serde_json::to_vec_pretty(&record)
        .map_err(|error| InstallError::because(&place.record, "it can't be written", error))?;
    file.replace(Some(&text))
}
