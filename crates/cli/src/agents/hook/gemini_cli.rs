//! Events of Gemini CLI.
//!
//! The client lets a hook replace a result in two ways: by the result of a second call, which changes
//! the order of parallel results, or by denying it, which keeps the order. The store lies in the
//! project's temporary folder, which the client lets its tools read, but does not search by default.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::answer::Answer;
use super::error::HookError;
use super::event::{Event, EventText, Hook};
use super::surroundings::Surroundings;

/// Our folder in a project's temporary folder.
const FOLDER: &str = "offcut";
/// The tool that loads instructions, which must stay whole.
const SKILL: &str = "activate_skill";

/// The directory for the results of an event's project.
pub(super) fn store(event: &[u8], surroundings: &Surroundings) -> Option<PathBuf> {
    let event = Event::parse(event).ok()?;
    Some(folder(&event, surroundings)?.join("store"))
}

pub(super) async fn answer(event: &Event, hook: &Hook<'_>) -> Result<Answer, HookError> {
    if event.hook_event_name != "AfterTool" || folder(event, hook.surroundings).is_none() {
        return Ok(Answer::default());
    }
    let Some(text) = text(&event.tool_response["llmContent"]) else {
        return Ok(Answer::default());
    };
    // A failed result would say only what the denial says.
    let is_failed = !event.tool_response["error"].is_null();
    let text = EventText {
        stays: is_failed || event.tool_name == SKILL,
        ..EventText::new(id(event), text)
    };
    let (shorter, row) = hook.shorten(event, text).await?;
    let output = shorter.map(|shorter| json!({"decision": "deny", "reason": shorter}));
    Ok(Answer::of(output, row))
}

/// Our folder in the temporary folder of the event's project, which the client names by a file in it:
/// `~/.gemini/tmp/PROJECT/chats/SESSION.jsonl`. `None` if that is not in the agent's own folder.
fn folder(event: &Event, surroundings: &Surroundings) -> Option<PathBuf> {
    let chats = event.transcript_path.as_deref()?.parent()?;
    let project = chats.parent().filter(|path| path.is_absolute())?;
    surroundings.folder_of_agent("tmp", project)?;
    (chats.file_name()? == "chats").then(|| project.join(FOLDER))
}

/// An id for a call, whose own is not in the event: the digits of the time.
fn id(event: &Event) -> String {
    let time = event
        .timestamp
        .as_str()
        .and_then(|time| time.split_once('T'));
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
