//! Transcripts: what an agent and its tools said, whatever wrote it down.

mod messages;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use offcut::format::Message;
use serde_json::Value;

use crate::failure::Failure;

/// A transcript that was read.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) messages: Vec<Message>,
}

/// Where a transcript is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

/// The files that `paths` name: files, folders with all that is in them and ends in `.json` or `.jsonl`, `-` for stdin. In order,
/// each once.
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
    found.dedup();
    if found.is_empty() {
        return Err(Failure::usage(
            "there are no transcripts in what was named",
            "name files, or folders with files that end in .json or .jsonl, or - for stdin",
        ));
    }
    Ok(found)
}

fn collect(folder: &Path, into: &mut Vec<Source>) -> Result<(), Failure> {
    let unreadable = |error| Failure::new(format!("the folder {} can't be read: {error}", folder.display()));
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
        if kind.is_dir() {
            // Not through links: they may lead round in a circle.
            collect(&path, into)?;
        } else if path.extension().is_some_and(|ending| ending == "json" || ending == "jsonl") {
            into.push(Source::File(path));
        }
    }
    Ok(())
}

impl Source {
    /// What it is called in tables and reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "stdin".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// How much there is to do, for the order in which it is done.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Stdin => u64::MAX,
            Self::File(path) => path.metadata().map_or(0, |metadata| metadata.len()),
        }
    }

    /// Reads it. The error says what is wrong with it.
    pub(crate) fn read(&self) -> Result<Transcript, String> {
        let mut bytes = Vec::new();
        let read = match self {
            Self::Stdin => std::io::stdin().lock().read_to_end(&mut bytes),
            Self::File(path) => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
        };
        read.map_err(|error| error.to_string())?;
        let text = String::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned())?;
        parse(&text)
    }
}

/// Reads a transcript of any kind.
pub(crate) fn parse(text: &str) -> Result<Transcript, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let raw = match &value {
        Value::Array(messages) => messages,
        Value::Object(fields) => fields
            .get("messages")
            .and_then(Value::as_array)
            .ok_or("it has no `messages`: a transcript is a list of messages, or an object with one")?,
        _ => return Err("it is neither a list of messages nor an object with `messages`".to_owned()),
    };
    let messages = messages::read(&offcut::format::OpenAiChat, raw);
    if !messages.iter().any(|message| matches!(message, Message::Assistant { .. })) {
        return Err("it has no message of an assistant, so no model call".to_owned());
    }
    Ok(Transcript { messages })
}
