//! Events of Gemini CLI.
//!
//! The client lets a hook replace a result in two ways: by denying it, which the model is told as an
//! error, or by the result of a second call. So the preview is written to a file, and the second call
//! reads it. Both that file and the store lie in the project's temporary folder, which the client lets
//! its tools read, but does not search by default.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use offcut::{ToolCall, ToolReduction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::error::HookError;
use super::event::{parse, shorten};
use super::surroundings::Surroundings;
use crate::Agent;
use crate::journal::Entry;

/// Our folder in a project's temporary folder.
const FOLDER: &str = "offcut";
/// Its reader cuts lines that have more UTF-16 units.
const LONGEST_LINE: usize = 2_000;
/// Its reader cuts files that have more lines.
const MOST_LINES: usize = 2_000;
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
    /// The tool whose result is replaced by this one.
    #[serde(default)]
    original_request_name: Option<String>,
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
    let Some(folder) = folder(&event, surroundings) else {
        return Ok(Answer::default());
    };
    let previews = folder.join("previews");
    if event.hook_event_name != "AfterTool" {
        return Ok(Answer::default());
    }
    if event.original_request_name.is_some() {
        forget(&event, &previews);
        return Ok(Answer::default());
    }
    let Some(text) = text(&event.tool_response["llmContent"]) else {
        return Ok(Answer::default());
    };
    let id = id(&event);
    let (name, length) = (Agent::GeminiCli.name(), text.len());
    let entry = Entry::new(name, &event.session_id, &id, &event.tool_name, length);
    let paths = ["file_path", "dir_path", "path"];
    if surroundings.reads_store(&event.cwd, &event.tool_input, &paths, &["command"]) {
        return Ok(Answer::of(None, entry.read()));
    }
    // A failed result would lose its mark by the second call.
    let is_failed = !event.tool_response["error"].is_null();
    if is_failed || event.tool_name == SKILL || surroundings.is_own_hint(&text) {
        return Ok(Answer::of(None, entry));
    }
    let session = reduction.session(&event.session_id);
    let call = ToolCall::new(id, &event.tool_name, event.tool_input.to_string());
    let shorter = shorten(&session, &call, text).await?;
    let Some(shorter) = shorter.filter(|shorter| is_read_whole(shorter)) else {
        return Ok(Answer::of(None, entry));
    };
    let file = previews.join(format!("{}-{}", call.id, std::process::id()));
    write(&file, &shorter)
        .map_err(|error| HookError::because("a preview could not be written", error))?;
    let Some(path) = file.to_str() else {
        return Ok(Answer::of(None, entry));
    };
    let reading = json!({"name": "read_file", "args": {"file_path": path}});
    let answer = json!({"hookEventName": "AfterTool", "tailToolCallRequest": reading});
    let output = json!({"hookSpecificOutput": answer}).to_string();
    Ok(Answer::of(Some(output), entry.shortened(shorter.len())))
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

/// Returns true if the client's reader shows `text` whole.
fn is_read_whole(text: &str) -> bool {
    let is_short = |line: &str| line.encode_utf16().count() <= LONGEST_LINE;
    text.split('\n').all(is_short) && text.split('\n').count() <= MOST_LINES
}

/// Removes the preview that this second call has read.
fn forget(event: &Event, previews: &Path) {
    let read = event.tool_input.get("file_path").and_then(Value::as_str);
    let Some(read) = read.map(Path::new) else {
        return;
    };
    if read.parent() == Some(previews) {
        // A preview that stays does no harm.
        _ = fs::remove_file(read);
    }
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create_new(file)?.write_all(text.as_bytes())
}
