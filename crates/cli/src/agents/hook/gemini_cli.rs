//! Events of Gemini CLI.
//!
//! The client lets a hook replace a result in two ways: by the result of a second call, which changes
//! the order of parallel results, or by denying it, which keeps the order. The store lies in the
//! project's temporary folder, which the client lets its tools read, but does not search by default.

use std::path::PathBuf;

use offcut::{ToolCall, ToolReduction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::error::HookError;
use super::event::{parse, shorten};
use super::surroundings::Surroundings;
use crate::agents::Agent;
use crate::agents::journal::Row;

/// Our folder in a project's temporary folder.
const FOLDER: &str = "offcut";
/// The tool that loads instructions, which must stay whole.
const SKILL: &str = "activate_skill";

#[derive(Deserialize)]
struct Event {
    hook_event_name: String,
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    transcript_path: PathBuf,
    #[serde(default)]
    cwd: PathBuf,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    tool_response: Value,
}

/// The directory for the results of an event's project.
pub(super) fn store(event: &[u8], surroundings: &Surroundings) -> Option<PathBuf> {
    let event: Event = parse(event).ok()?;
    Some(folder(&event, surroundings)?.join("store"))
}

pub(super) async fn answer(
    event: &[u8],
    reduction: &ToolReduction,
    surroundings: &Surroundings,
) -> Result<Answer, HookError> {
    let event: Event = parse(event)?;
    if event.hook_event_name != "AfterTool" || folder(&event, surroundings).is_none() {
        return Ok(Answer::default());
    }
    let Some(text) = text(&event.tool_response["llmContent"]) else {
        return Ok(Answer::default());
    };
    let id = id(&event);
    let (name, length) = (Agent::GeminiCli.name(), text.len());
    let row = Row::new(name, &event.session_id, &event.tool_name, length as u64);
    let paths = ["file_path", "dir_path", "path"];
    if surroundings.reads_store(&event.cwd, &event.tool_input, &paths, &["command"]) {
        return Ok(Answer::of(None, row.read()));
    }
    // A failed result would say only what the denial says.
    let is_failed = !event.tool_response["error"].is_null();
    if is_failed || event.tool_name == SKILL || surroundings.is_own_hint(&text) {
        return Ok(Answer::of(None, row));
    }
    let session = reduction.session(&event.session_id);
    let call = ToolCall::new(id, &event.tool_name, event.tool_input.to_string());
    let shorter = shorten(&session, &call, text).await?;
    let Some(shorter) = shorter else {
        return Ok(Answer::of(None, row));
    };
    let output = json!({"decision": "deny", "reason": shorter}).to_string();
    Ok(Answer::of(Some(output), row.shortened(shorter.len())))
}

/// Our folder in the temporary folder of the event's project, which the client names by a file in it:
/// `~/.gemini/tmp/PROJECT/chats/SESSION.jsonl`. `None` if that is not in the agent's own folder.
fn folder(event: &Event, surroundings: &Surroundings) -> Option<PathBuf> {
    let chats = event.transcript_path.parent()?;
    let project = chats.parent().filter(|path| path.is_absolute())?;
    surroundings.folder_of_agent("tmp", project)?;
    (chats.file_name()? == "chats").then(|| project.join(FOLDER))
}

/// An id for a call, whose own is not in the event: the digits of the time.
fn id(event: &Event) -> String {
    let time = event.timestamp.split_once('T');
    let digits: String = time
        .map_or("", |(_, time)| time)
        .chars()
        .filter(char::is_ascii_digit)
        .take(9)
        .collect();
    if digits.is_empty() {
        "call".to_owned()
    } else {
        digits
    }
}

/// The text of a result, joined as the client joins it. `None` if there is something else in it.
fn text(content: &Value) -> Option<String> {
    let of_part = |part: &Value| {
        let is_text = part.as_object().is_some_and(|part| part.len() == 1);
        is_text.then(|| part["text"].as_str().map(str::to_owned))?
    };
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts: Option<Vec<String>> = parts.iter().map(of_part).collect();
            Some(texts?.join("\n"))
        }
        part => of_part(part),
    }
}
