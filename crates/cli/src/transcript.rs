//! Transcripts of agents and their tools, in many formats.

mod fields;
mod log;
mod messages;
mod requests;
mod sessions;
pub(crate) mod unknown;

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use offcut::format::{Message, WireFormat};
use serde_json::Value;

use crate::failure::{Failure, OrFail as _};
pub(crate) use unknown::READ;

/// The file of a transcript, or `-` for stdin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source(pub(crate) PathBuf);

/// Lists the files that `paths` name: files, folders with every `.json`, `.jsonl` or `.traj` file
/// below but for Claude Code's of subagents, and `-` for stdin. Sorted, each once.
pub(crate) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => collect(path, &mut found)?,
            false => found.push(Source(path.clone())),
        }
    }
    found.sort();
    let mut seen = BTreeSet::new();
    // A file may have several names.
    found.retain(|Source(path)| seen.insert(path.canonicalize().unwrap_or(path.clone())));
    if found.is_empty() {
        return Err(Failure::usage(
            "no transcripts were found at the given paths",
            "name files, or folders with files that end in .json, .jsonl or .traj, or - for stdin",
        ));
    }
    Ok(found)
}

fn collect(folder: &Path, into: &mut Vec<Source>) -> Result<(), Failure> {
    let unreadable = format_args!("the folder {} can't be read", folder.display());
    for entry in std::fs::read_dir(folder).or_fail(unreadable)? {
        let entry = entry.or_fail(unreadable)?;
        let (path, kind) = (entry.path(), entry.file_type().or_fail(unreadable)?);
        // A pipe or a socket may have no end.
        let has_end = |found: Metadata| found.is_file() || found.is_dir();
        if kind.is_dir() {
            // Links are not followed: they may form a cycle.
            collect(&path, into)?;
        } else if path
            .extension()
            .is_some_and(|ending| ending == "json" || ending == "jsonl" || ending == "traj")
            && path.metadata().map_or(true, has_end)
            && !is_of_subagent(&path)
        {
            into.push(Source(path));
        }
    }
    Ok(())
}

/// Returns true for what Claude Code keeps of a subagent: its messages, and a description beside them.
fn is_of_subagent(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_aside = || {
        let mut start = Vec::new();
        let file = File::open(path).map(|file| file.take(1_024));
        _ = file.and_then(|mut file| file.read_to_end(&mut start));
        String::from_utf8_lossy(&start).contains(r#""isSidechain":true"#)
    };
    name.starts_with("agent-") && (name.ends_with(".meta.json") || is_aside())
}

/// The number of a line of a log, from 1, and of a request in the document there, from 0.
#[cfg(feature = "serve")]
pub(crate) type Place = (usize, usize);

impl Source {
    fn is_stdin(&self) -> bool {
        self.0.as_os_str() == "-"
    }

    /// Returns its name in tables and reports.
    pub(crate) fn name(&self) -> String {
        match self.is_stdin() {
            true => "stdin".to_owned(),
            false => self.0.display().to_string(),
        }
    }

    /// Estimates the amount of work, to order the sources.
    pub(crate) fn size(&self) -> u64 {
        let metadata = self.0.metadata();
        metadata.map_or(u64::MAX, |metadata| metadata.len())
    }

    /// Reads its transcripts, one, or several if a session was compacted or each line is a
    /// transcript. An error says why it holds nothing to replay.
    pub(crate) fn read(&self) -> Result<Vec<Vec<Message>>, String> {
        let text = self.text().map_err(|error| error.to_string())?;
        transcripts(&documents(&text)?)
    }

    /// Reads all of it.
    pub(crate) fn text(&self) -> io::Result<String> {
        io::read_to_string(self.open()?)
    }

    fn open(&self) -> io::Result<Box<dyn Read>> {
        Ok(match self.is_stdin() {
            true => Box::new(io::stdin().lock()),
            false => Box::new(File::open(&self.0)?),
        })
    }

    /// Reads a log of requests, however long: shows each body with its place, in the order of the log. Returns the
    /// numbers of lines that are not JSON. A file that is one document may have several lines.
    #[cfg(feature = "serve")]
    pub(crate) fn see_bodies(&self, mut see: impl FnMut(Place, Value)) -> io::Result<Vec<usize>> {
        use std::io::BufRead as _;
        let mut log = io::BufReader::new(self.open()?);
        let (mut line, mut number, mut bad) = (Vec::new(), 0, Vec::new());
        while log.read_until(b'\n', &mut line)? > 0 {
            number += 1;
            let text = line
                .strip_prefix(b"\xef\xbb\xbf")
                .unwrap_or(&line)
                .trim_ascii();
            let mut document = serde_json::from_slice(text);
            if number == 1 && document.as_ref().is_err_and(serde_json::Error::is_eof) {
                log.read_to_end(&mut line)?;
                document = serde_json::from_slice(&line);
            }
            match document {
                Ok(document) => {
                    let bodies = requests::bodies(&document).enumerate();
                    bodies.for_each(|(at, body)| see((number, at), body));
                }
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(_) => bad.push(number),
            }
            line.clear();
        }
        Ok(bad)
    }
}

/// Reads transcripts of any kind, as a list of messages each.
fn transcripts(documents: &[Value]) -> Result<Vec<Vec<Message>>, String> {
    let transcripts = match (sessions::read(documents), unknown::of_messages(documents)) {
        (Some(transcripts), _) => transcripts,
        (None, Some(name)) => {
            return Err(format!("it looks like {name}, which replay does not read"));
        }
        (None, None) => log::read(documents),
    };
    let called: Vec<_> = transcripts
        .into_iter()
        .filter(|messages| messages.iter().any(messages::is_turn))
        .collect();
    if called.is_empty() {
        return Err("it has no assistant turn in a known format".to_owned());
    }
    let is_result = |message: &Message| matches!(message, Message::Tool { .. });
    match called.iter().flatten().any(is_result) {
        true => Ok(called),
        false => Err("it has no tool result in a known format".to_owned()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_subagents_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("s1/subagents");
        std::fs::create_dir_all(&below).unwrap();
        let aside = format!("{{\"isSidechain\":true,\"a\":\"{}\"}}", "é".repeat(1_000));
        for (name, text) in [
            ("agent-a7.jsonl", &*aside),
            ("agent-a7.meta.json", "{}"),
            ("agent-b.jsonl", "{\"isSidechain\":false}"),
            ("b.meta.json", "{}"),
        ] {
            std::fs::write(below.join(name), text).unwrap();
        }
        let found = sources(&[folder.path().to_owned()]).unwrap();
        let names = ["agent-b.jsonl", "b.meta.json"];
        assert_eq!(found, names.map(|name| Source(below.join(name))));
        // One that is named is meant.
        let named = below.join("agent-a7.jsonl");
        assert_eq!(
            sources(std::slice::from_ref(&named)).unwrap(),
            [Source(named.clone())]
        );
    }

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
            let read = documents(text).and_then(|documents| transcripts(&documents));
            let error = read.unwrap_err();
            assert!(error.contains(why), "{text:?}: {error:?}");
        }
    }
}
