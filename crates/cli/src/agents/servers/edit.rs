//! Changes of a text by which servers get Offcut in front.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::server::{ArgsPlace, Server, ServerCommand};

/// The change of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Wrapped {
    /// Names of the objects that lead to it, and its own.
    pub(super) path: Vec<String>,
    /// The words that were put in front of it.
    pub(super) front: Vec<String>,
    /// The text that began its list of arguments, where there was none.
    key: Option<String>,
}

/// A place of the text, and what takes it.
type TextEdit = (Range<usize>, String);

/// The text in which all servers over stdio have `front`, a program and its arguments, in front, and the
/// changes.
pub(super) fn wrapped(text: &str, servers: &[Server], front: &[String]) -> (String, Vec<Wrapped>) {
    let mut all = Vec::new();
    let mut edits = Vec::new();
    for server in servers {
        let Some(command) = server.command.as_ref().filter(|one| one.front().is_none()) else {
            continue;
        };
        edits.extend(wrapping(text, command, front));
        let key = match command.args {
            ArgsPlace::Missing { key } => Some(key.to_owned()),
            _ => None,
        };
        all.push(Wrapped {
            path: server.path.clone(),
            front: front.to_vec(),
            key,
        });
    }
    (applied(text, edits), all)
}

/// The changes that have put `front` in front of servers, as far as their commands tell.
pub(super) fn by_shape(servers: &[Server], front: &[String]) -> Vec<Wrapped> {
    let is_ours = |command: &ServerCommand| command.is_behind(front);
    let ours = servers
        .iter()
        .filter(|server| server.command.as_ref().is_some_and(is_ours));
    let ours = ours.map(|server| Wrapped {
        path: server.path.clone(),
        front: front.to_vec(),
        key: None,
    });
    ours.collect()
}

/// The changes that put words in front of a command.
fn wrapping(text: &str, command: &ServerCommand, front: &[String]) -> Vec<TextEdit> {
    // A string of JSON is one of TOML too.
    let quoted = |word: &String| serde_json::Value::from(word.as_str()).to_string();
    let front: Vec<String> = front.iter().map(quoted).collect();
    let (own, first) = (command.places[0].clone(), command.places.get(1));
    let (program, words) = (front[0].clone(), front[1..].join(", "));
    let original = &text[own.clone()];
    match command.args {
        ArgsPlace::Inside => vec![(own.start..own.start, front.join(", ") + ", ")],
        ArgsPlace::Missing { key } => vec![(own, format!("{program}{key}[{words}, {original}]"))],
        ArgsPlace::List { start } => {
            let (at, comma) = first.map_or((start + 1, ""), |first| (first.start, ", "));
            vec![
                (own.clone(), program),
                (at..at, format!("{words}, {original}{comma}")),
            ]
        }
    }
}

/// The text without the changes of a record, also where it was written anew, or servers have other names now. A
/// server that others have changed since stays as it is.
pub(super) fn undone(text: &str, servers: &[Server], record: &[Wrapped]) -> (String, Vec<Wrapped>) {
    let is_there = |one: &Wrapped| servers.iter().any(|server| server.path == one.path);
    let mut renamed: Vec<&Wrapped> = record.iter().filter(|one| !is_there(one)).collect();
    let (mut edits, mut all) = (Vec::new(), Vec::new());
    for server in servers {
        let Some(command) = &server.command else {
            continue;
        };
        let mut own = record.iter().filter(|one| one.path == server.path);
        let found = own.find(|one| command.is_behind(&one.front)).or_else(|| {
            let mut others = renamed.iter();
            let at = others.position(|one| command.is_behind(&one.front));
            at.map(|at| renamed.remove(at))
        });
        if let Some(found) = found {
            edits.extend(unwrapping(text, command, found));
            let path = server.path.clone();
            all.push(Wrapped {
                path,
                ..found.clone()
            });
        }
    }
    (applied(text, edits), all)
}

/// The changes that take the words of a record from the front of a command.
fn unwrapping(text: &str, command: &ServerCommand, record: &Wrapped) -> Vec<TextEdit> {
    let (places, nth) = (&command.places, record.front.len());
    let (own, original) = (places[0].clone(), &places[nth]);
    if matches!(command.args, ArgsPlace::Inside) {
        return vec![(own.start..original.start, String::new())];
    }
    let begun = record.key.as_ref().map(|key| format!("{key}["));
    let is_begun = begun.is_some_and(|begun| text[own.end..places[1].start] == begun);
    let command = text[original.clone()].to_owned();
    if is_begun && text[original.end..].starts_with(']') {
        return vec![(own.start..original.end + 1, command)];
    }
    let rest = &text[original.end..];
    let spaces = rest.len() - rest.trim_start().len();
    let end = match places.get(nth + 1) {
        Some(next) => next.start,
        // A list that was written anew may have a comma after its last word.
        None if rest[spaces..].starts_with(',') => original.end + spaces + 1,
        None => original.end,
    };
    vec![(own, command), (places[1].start..end, String::new())]
}

fn applied(text: &str, mut edits: Vec<TextEdit>) -> String {
    let mut text = text.to_owned();
    // From the last to the first, so that places stay.
    edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    for (place, new) in edits {
        text.replace_range(place, &new);
    }
    text
}
