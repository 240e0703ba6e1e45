//! All that an agent is shown.

use offcut::hint::{Hint, Kind};
use regex::Regex;
use serde_json::{Value, json};

use crate::scripted::step::{Step, bash, lost, saying};

/// The reader of stored results, as hints name it.
pub(crate) const READER: &str = "read_file";
/// The tool that returns what headroom has compressed.
const RETRIEVE: &str = "headroom_retrieve";
/// Texts that other context editors leave in place of a result.
const CLEARED: [&str; 2] = ["[cleared]", "[Old tool result content cleared]"];

/// A call and its result, as they are in the messages now.
#[derive(Debug)]
struct Seen {
    tool: String,
    arguments: Value,
    text: String,
    /// The result is a hint, and `text` its preview.
    hint: Option<Hint>,
}

impl Seen {
    fn argument(&self, name: &str) -> &str {
        self.arguments[name].as_str().unwrap_or_default()
    }

    /// The lines in view, without the places before them.
    fn lines(&self) -> impl Iterator<Item = &str> {
        // A page is the text itself; previews and matches have places before their lines.
        let is_numbered = self
            .hint
            .as_ref()
            .is_some_and(|hint| !matches!(hint.kind, Kind::Page { .. }));
        self.text.lines().map(move |line| {
            if is_numbered {
                without_place(line)
            } else {
                line
            }
        })
    }
}

/// Removes `12|`, `12+400|` or `12:` from the beginning of a line.
fn without_place(line: &str) -> &str {
    match line.split_once(['|', ':']) {
        Some((place, rest))
            if !place.is_empty() && place.bytes().all(|b| b.is_ascii_digit() || b == b'+') =>
        {
            rest
        }
        _ => line,
    }
}

/// The whole numbers among the words of `text`.
pub(crate) fn numbers(text: &str) -> impl Iterator<Item = usize> {
    text.split_whitespace()
        .filter_map(|word| word.trim_end_matches(['?', ',']).parse().ok())
}

/// The messages of a request, as an agent reads them.
#[derive(Debug)]
pub(crate) struct RequestView {
    seen: Vec<Seen>,
    /// The agent's own words, in order.
    said: Vec<String>,
    pub(crate) prompt: String,
}

impl RequestView {
    pub(crate) fn new(messages: &[Value]) -> Self {
        let mut view = Self {
            seen: Vec::new(),
            said: Vec::new(),
            prompt: messages
                .iter()
                .find(|message| message["role"] == "user")
                .and_then(|message| message["content"].as_str())
                .unwrap_or_default()
                .to_owned(),
        };
        let mut calls: Vec<(&Value, &Value)> = Vec::new();
        for message in messages {
            if let Some(says) = message["content"]
                .as_str()
                .filter(|_| message["role"] == "assistant")
            {
                view.said.push(says.to_owned());
            }
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                calls.push((&call["id"], &call["function"]));
            }
            if message["role"] != "tool" {
                continue;
            }
            let Some((_, function)) = calls.iter().find(|(id, _)| **id == message["tool_call_id"])
            else {
                continue;
            };
            let text = message["content"].as_str().unwrap_or_default();
            let hint = Hint::parse(text);
            let arguments = function["arguments"].as_str().unwrap_or_default();
            view.seen.push(Seen {
                tool: function["name"].as_str().unwrap_or_default().to_owned(),
                arguments: serde_json::from_str(arguments).unwrap_or(Value::Null),
                text: hint.as_ref().map_or(text, |hint| &hint.preview).to_owned(),
                hint,
            });
        }
        view
    }

    /// The last of the agent's own words that begin with `prefix`, without it.
    pub(crate) fn note(&self, prefix: &str) -> Option<&str> {
        self.said
            .iter()
            .rev()
            .find_map(|said| said.strip_prefix(prefix))
    }

    /// An error runs the command, if that has not been done.
    pub(crate) fn run(&self, command: &str) -> Result<(), Step> {
        self.last(command).map(drop).ok_or_else(|| bash(command))
    }

    pub(crate) fn times_run(&self, command: &str) -> usize {
        self.seen
            .iter()
            .filter(|seen| seen.argument("command") == command)
            .count()
    }

    /// The commands that were run and begin with `prefix`, in order.
    pub(crate) fn commands(&self, prefix: &str) -> Vec<&str> {
        let commands = self.seen.iter().map(|seen| seen.argument("command"));
        commands
            .filter(|command| command.starts_with(prefix))
            .collect()
    }

    /// Number of edits that were made.
    pub(crate) fn edits(&self) -> usize {
        self.seen.iter().filter(|seen| seen.tool == "edit").count()
    }

    /// The last run of `command`.
    fn last(&self, command: &str) -> Option<&Seen> {
        let mut results = self.seen.iter().rev();
        results.find(|seen| seen.argument("command") == command)
    }

    /// The last answer of the reader to a call for `location` with this argument.
    fn read(&self, location: &str, name: &str, argument: &str) -> Option<&Seen> {
        self.seen.iter().rev().find(|seen| {
            seen.tool == READER
                && seen.argument("path") == location
                && seen.argument(name) == argument
        })
    }

    /// Searches what the last run of `command` printed for a line, at first in view, then where its hint leads. Returns
    /// the captures of the first line that matches, the whole line first. If a stored part has not been searched yet, an
    /// error reads it; if no line matches, it gives up.
    pub(crate) fn search(&self, command: &str, pattern: &str) -> Result<Vec<String>, Step> {
        let regex = Regex::new(pattern).map_err(|_| lost())?;
        let captured = |seen: &Seen| {
            let captures = seen.lines().find_map(|line| regex.captures(line))?;
            let captures = captures
                .iter()
                .map(|part| part.map_or("", |part| part.as_str()).to_owned());
            Some(captures.collect())
        };
        let result = self.last(command).ok_or_else(lost)?;
        if let Some(found) = captured(result) {
            return Ok(found);
        }
        let read = match location(result) {
            None => self.elsewhere(result)?,
            Some(location) => {
                let arguments = json!({"path": location, "pattern": pattern, "limit": 20});
                // A page that was cleared can be read again.
                let read = self.read(location, "pattern", pattern);
                read.filter(|read| is_page(read))
                    .ok_or_else(|| saying("", READER, arguments))?
            }
        };
        captured(read).ok_or_else(lost)
    }

    /// All lines that match, of the last run of `command`, one page after the other. `fold` takes the lines of a page
    /// and the notes so far, which stay in the agent's own words, and gives the new notes.
    pub(crate) fn all_lines(
        &self,
        command: &str,
        pattern: &str,
        fold: impl Fn(&str, &mut dyn Iterator<Item = &str>) -> String,
    ) -> Result<String, Step> {
        let result = self.last(command).ok_or_else(lost)?;
        let regex = Regex::new(pattern).map_err(|_| lost())?;
        let matching = |line: &&str| regex.is_match(line);
        let Some(location) = location(result) else {
            let whole = self.elsewhere(result)?;
            return Ok(fold("", &mut whole.lines().filter(matching)));
        };
        let read = |offset: &str, notes: &str| {
            let arguments = json!({"path": location, "pattern": pattern, "offset": offset});
            saying(format!("So far: {notes}"), READER, arguments)
        };
        let page = self.read(location, "pattern", pattern);
        let page = page.ok_or_else(|| read("1", ""))?;
        let notes = self.note("So far: ").unwrap_or_default();
        if !is_page(page) {
            return Err(read(page.argument("offset"), notes));
        }
        let notes = fold(notes, &mut page.lines().filter(matching));
        let prose = page.hint.as_ref().map_or("", |hint| &hint.prose);
        match prose.split_once("Continue with offset ") {
            Some((_, next)) => Err(read(next.trim_end_matches('.'), &notes)),
            None => Ok(notes),
        }
    }

    /// A result that has no hint. If another context editor has removed it, what a hash in it leads to, or else an
    /// error that runs the command once more.
    fn elsewhere<'v>(&'v self, result: &'v Seen) -> Result<&'v Seen, Step> {
        if CLEARED.contains(&result.text.as_str()) {
            return Err(bash(result.argument("command")));
        }
        let Some(hash) = hash_in(&result.text) else {
            return Ok(result);
        };
        let is_this = |seen: &&Seen| seen.tool == RETRIEVE && seen.argument("hash") == hash;
        let read = self.seen.iter().rev().find(is_this);
        // Retrieved content can be compressed again.
        read.filter(|read| hash_in(&read.text).is_none())
            .ok_or_else(|| saying("", RETRIEVE, json!({"hash": hash})))
    }
}

/// The hash in a mark of headroom's.
fn hash_in(text: &str) -> Option<&str> {
    let (_, rest) = text
        .split_once("hash=")
        .or_else(|| text.split_once("<<ccr:"))?;
    let end = rest
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(rest.len());
    (end >= 6).then(|| &rest[..end])
}

/// The place where the whole of a result can be read, if it is not in view.
fn location(seen: &Seen) -> Option<&str> {
    Some(seen.hint.as_ref()?.location.as_ref()?.as_str())
}

/// Returns true for an answer of the reader that is still in view.
fn is_page(seen: &Seen) -> bool {
    let kind = seen.hint.as_ref().map(|hint| hint.kind);
    matches!(kind, Some(Kind::Page { .. } | Kind::Matches))
}
