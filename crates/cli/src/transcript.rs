//! Transcripts of agents and their tools, in many formats.

mod fields;
mod log;
mod messages;
mod requests;
mod sessions;
pub(crate) mod unknown;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use offcut::format::{Message, WireFormat};
use serde_json::Value;

use crate::failure::Failure;
use crate::units;
pub(crate) use unknown::READ;

/// Reason why a source holds nothing to replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SkipReason {
    /// It can't be read, or is in another format.
    Unreadable(String),
    /// It holds conversations, but none with a recognizable tool result.
    NoResults(String),
}

impl SkipReason {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Unreadable(why) | Self::NoResults(why) => why,
        }
    }
}

/// Location of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

/// Lists the files that `paths` name: files, folders with every `.json`, `.jsonl` or `.traj` file
/// below, and `-` for stdin. Sorted, each once.
pub(crate) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            found.push(Source::Stdin);
        } else if path.is_dir() {
            collect(path, &mut found)?;
        } else {
            found.push(Source::File(path.clone()));
        }
    }
    found.sort();
    let mut seen = BTreeSet::new();
    found.retain(|source| seen.insert(source.identity()));
    if found.is_empty() {
        return Err(Failure::usage(
            "no transcripts were found at the given paths",
            "name files, or folders with files that end in .json, .jsonl or .traj, or - for stdin",
        ));
    }
    Ok(found)
}

fn collect(folder: &Path, into: &mut Vec<Source>) -> Result<(), Failure> {
    let unreadable = |error| {
        Failure::new(format!(
            "the folder {} can't be read: {error}",
            folder.display()
        ))
    };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
        if kind.is_dir() {
            // Links are not followed: they may form a cycle.
            collect(&path, into)?;
        } else if path
            .extension()
            .is_some_and(|ending| ending == "json" || ending == "jsonl" || ending == "traj")
        {
            into.push(Source::File(path));
        }
    }
    Ok(())
}

impl Source {
    /// Returns its name in tables and reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "stdin".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Returns a value that is the same for all names of one file.
    fn identity(&self) -> Self {
        match self {
            Self::Stdin => Self::Stdin,
            Self::File(path) => Self::File(path.canonicalize().unwrap_or_else(|_| path.clone())),
        }
    }

    /// Estimates the amount of work, to order the sources.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Stdin => u64::MAX,
            Self::File(path) => path.metadata().map_or(0, |metadata| metadata.len()),
        }
    }

    /// Reads its transcripts, one, or several if a session was compacted or each line is a
    /// transcript.
    pub(crate) fn read(&self) -> Result<Vec<Vec<Message>>, SkipReason> {
        transcripts(&self.documents()?)
    }

    /// Reads a log of requests, however long: shows each body with the number of its line, in the order of
    /// the log. Returns the numbers of lines that are not JSON. A file that is one document may have several
    /// lines.
    #[cfg(feature = "serve")]
    pub(crate) fn see_bodies(
        &self,
        mut see: impl FnMut(usize, Value),
    ) -> Result<Vec<usize>, SkipReason> {
        use std::io::BufRead as _;
        let unreadable = |error: std::io::Error| SkipReason::Unreadable(error.to_string());
        let log: Box<dyn std::io::Read> = match self {
            Self::Stdin => Box::new(std::io::stdin().lock()),
            Self::File(path) => Box::new(std::fs::File::open(path).map_err(unreadable)?),
        };
        let mut log = std::io::BufReader::new(log);
        let (mut line, mut number, mut bad) = (Vec::new(), 0, Vec::new());
        while log.read_until(b'\n', &mut line).map_err(unreadable)? > 0 {
            number += 1;
            let text = line
                .strip_prefix(b"\xef\xbb\xbf")
                .unwrap_or(&line)
                .trim_ascii();
            let mut document = serde_json::from_slice(text);
            if number == 1 && document.as_ref().is_err_and(serde_json::Error::is_eof) {
                log.read_to_end(&mut line).map_err(unreadable)?;
                document = serde_json::from_slice(&line);
            }
            match document {
                Ok(document) => {
                    let bodies = requests::bodies(&document);
                    bodies.into_iter().for_each(|body| see(number, body));
                }
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(_) => bad.push(number),
            }
            line.clear();
        }
        Ok(bad)
    }

    fn documents(&self) -> Result<Vec<Value>, SkipReason> {
        let mut bytes = Vec::new();
        let read = match self {
            Self::Stdin => std::io::stdin().lock().read_to_end(&mut bytes),
            Self::File(path) => {
                std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
            }
        };
        read.map_err(|error| SkipReason::Unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| SkipReason::Unreadable("it is not valid UTF-8".to_owned()))?;
        documents(&text).map_err(SkipReason::Unreadable)
    }
}

/// Reads transcripts of any kind, as a list of messages each.
fn transcripts(documents: &[Value]) -> Result<Vec<Vec<Message>>, SkipReason> {
    let transcripts = match sessions::read(documents) {
        Some(transcripts) => transcripts,
        None => match unknown::of_messages(documents) {
            Some(name) => {
                let why = format!("it looks like {name}, which replay does not read");
                return Err(SkipReason::Unreadable(why));
            }
            None => log::read(documents),
        },
    };
    let called: Vec<_> = transcripts
        .into_iter()
        .filter(|messages| messages.iter().any(messages::is_turn))
        .collect();
    let count = |is_one: fn(&Message) -> bool| {
        let all = called.iter().flatten();
        all.filter(|message| is_one(message)).count() as u64
    };
    if count(is_result) > 0 {
        return Ok(called);
    }
    if called.is_empty() {
        return Err(SkipReason::Unreadable(
            "it has no assistant turn in a known format".to_owned(),
        ));
    }
    let calls: usize = called.iter().flatten().map(calls).sum();
    Err(SkipReason::NoResults(format!(
        "it has no tool result in a known format: {}, {}",
        units::count(count(messages::is_turn), "assistant turn"),
        units::count(calls as u64, "tool call"),
    )))
}

/// Splits a file into documents: one, or one for each line.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(document) => Ok(vec![document]),
        Err(error) if error.is_syntax() && text.trim_start().starts_with('{') => log::lines(text),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}

/// Reads one message of chat completions.
pub(crate) fn chat_message(message: &Value) -> Option<Message> {
    message.get("role")?;
    let mut read = messages::read(WireFormat::OpenAiChat, std::slice::from_ref(message));
    read.pop().filter(|_| read.is_empty())
}

fn is_result(message: &Message) -> bool {
    matches!(message, Message::Tool { .. })
}

fn calls(message: &Message) -> usize {
    match message {
        Message::Assistant { calls, .. } => calls.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_transcripts_are_refused_with_a_reason() {
        for (text, why) in [
            ("", "not JSON"),
            ("hello", "not JSON"),
            ("{\"messages\": [", "not JSON"),
            ("{}\n{]\n{}", "line 2"),
            ("[]", "no assistant turn"),
            ("{\"a\": 1}", "no assistant turn"),
            ("{\"a\": 1}\n{\"a\": 2}\n", "no assistant turn"),
            (
                "[{\"role\": \"user\", \"content\": \"hi\"}]",
                "no assistant turn",
            ),
            ("7", "no assistant turn"),
        ] {
            let error = match documents(text) {
                Ok(documents) => transcripts(&documents).unwrap_err().text().to_owned(),
                Err(error) => error,
            };
            assert!(error.contains(why), "{text:?}: {error:?}");
        }
    }
}
