//! Events of Gemini CLI.
//!
//! The client lets a hook replace a result in two ways: by the result of a second call, which changes
//! the order of parallel results, or by denying it, which keeps the order. The store lies in the
//! project's temporary folder, which the client lets its tools read, but does not search by default.

use std::path::PathBuf;

use serde_json::Value;

use super::event::{Event, EventText};
use super::surroundings::Surroundings;

/// The lines that the client puts around each text that it does not trust.
const UNTRUSTED: [&str; 2] = ["<untrusted_context>\n", "\n</untrusted_context>"];
/// Our folder in a project's temporary folder.
const FOLDER: &str = "offcut";
/// The tool that loads instructions, which must stay whole.
const SKILL: &str = "activate_skill";

pub(super) fn text(event: &Event, surroundings: &Surroundings) -> Option<EventText> {
    folder(event, surroundings)?;
    let (text, around) = joined(&event.tool_response["llmContent"])?;
    // A failed result would say only what the denial says.
    let is_failed = !event.tool_response["error"].is_null();
    Some(EventText {
        stays: is_failed || event.tool_name == SKILL,
        around,
        ..EventText::new(&id(event), vec![text])
    })
}

/// Our folder in the temporary folder of the event's project, which the client names by a file in it:
/// `~/.gemini/tmp/PROJECT/chats/SESSION.jsonl`. `None` if that is not in the agent's own folder.
pub(super) fn folder(event: &Event, surroundings: &Surroundings) -> Option<PathBuf> {
    let chats = event.transcript_path.as_deref()?.parent()?;
    let project = chats.parent().filter(|path| path.is_absolute())?;
    let is_own = surroundings.in_agent_home("tmp", project)?.is_dir();
    (is_own && chats.file_name()? == "chats").then(|| project.join(FOLDER))
}

/// An id for a call, whose own is not in the event: the digits of the time.
fn id(event: &Event) -> String {
    let time = event.timestamp.as_str().unwrap_or_default();
    let (_, time) = time.split_once('T').unwrap_or_default();
    let digits: String = time.chars().filter(char::is_ascii_digit).take(9).collect();
    match digits.is_empty() {
        true => "call".to_owned(),
        false => digits,
    }
}

/// The text of a result, joined as the client joins it, and what was around all of its parts. `None` if there is
/// something else in it.
fn joined(content: &Value) -> Option<(String, Option<[&'static str; 2]>)> {
    let of_part = |part: &Value| {
        let is_text = part.as_object().is_some_and(|part| part.len() == 1);
        is_text.then(|| part["text"].as_str().map(str::to_owned))?
    };
    let texts: Vec<String> = match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => parts.iter().map(of_part).collect::<Option<_>>()?,
        part => vec![of_part(part)?],
    };
    let [before, after] = UNTRUSTED;
    let inner = texts
        .iter()
        .map(|text| text.strip_prefix(before)?.strip_suffix(after));
    let inner = inner.collect::<Option<Vec<_>>>();
    Some(match inner.filter(|inner| !inner.is_empty()) {
        Some(inner) => (inner.join("\n"), Some(UNTRUSTED)),
        None => (texts.join("\n"), None),
    })
}
