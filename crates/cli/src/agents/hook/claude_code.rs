//! Events of Claude Code.

use std::path::{Path, PathBuf};

use offcut::{ToolCall, ToolReduction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::error::HookError;
use super::event::{parse, session, shorten, whole};
use super::surroundings::Surroundings;
use crate::agents::Agent;
use crate::agents::journal::Row;

/// The field by which the client says where it has spilled all of a command's output.
const SPILLED: &str = "persistedOutputPath";
const SPILLED_SIZE: &str = "persistedOutputSize";
/// Length in bytes of the client's own preview of such output, with the lines around it.
const OWN_PREVIEW: usize = 2_300;
/// Length in bytes of ours in place of it, so that with the hint it takes about as much room.
const INSTEAD: usize = 2_000;

#[derive(Deserialize)]
struct Event {
    hook_event_name: String,
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    cwd: PathBuf,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    tool_response: Value,
    #[serde(default)]
    tool_use_id: String,
    #[serde(default)]
    transcript_path: PathBuf,
}

pub(super) async fn answer(
    event: &[u8],
    reduction: &ToolReduction,
    surroundings: &Surroundings,
) -> Result<Answer, HookError> {
    let mut event: Event = parse(event)?;
    if event.hook_event_name != "PostToolUse" {
        return Ok(Answer::default());
    }
    let is_read = reads_store(&event, surroundings);
    let mut rows = Vec::new();
    let session = session(reduction, &event.session_id, event.agent_id.as_deref());
    let transcript = surroundings.file_of_agent("projects", &event.transcript_path);
    let mut is_shorter = false;
    for path in texts(&event.tool_name, &event.tool_response) {
        let Some(Value::String(text)) = event.tool_response.pointer(&path) else {
            continue;
        };
        if text.is_empty() {
            continue;
        }
        let id = match path.as_str() {
            "" | "/stdout" | "/content" | "/file/content" | "/result" => event.tool_use_id.clone(),
            _ => format!("{}{}", event.tool_use_id, path.replace('/', "-")),
        };
        // For stdout that it has put into a file, the client would show its own preview.
        let is_spilled = path == "/stdout" && event.tool_response.get(SPILLED).is_some();
        let most = if is_spilled { OWN_PREVIEW } else { usize::MAX };
        let row = row(&event, text.len().min(most), transcript.as_deref());
        if is_read {
            rows.push(row.read());
            continue;
        }
        if surroundings.is_own_hint(text) {
            rows.push(row);
            continue;
        }
        let call = ToolCall::new(id, &event.tool_name, event.tool_input.to_string());
        let spilled = (path == "/stdout").then(|| spilled(&event, surroundings));
        let whole = whole(text, spilled.flatten().as_deref())?;
        let shorter = if is_spilled {
            shorten(&session.with_previews_of_at_most(INSTEAD), &call, whole).await?
        } else {
            shorten(&session, &call, whole).await?
        };
        rows.push(match &shorter {
            Some(shorter) => row.shortened(shorter.len()),
            None => row,
        });
        if let (Some(shorter), Some(text)) = (shorter, event.tool_response.pointer_mut(&path)) {
            *text = shorter.into();
            is_shorter = true;
            if path == "/file/content"
                && let Some(line) = event.tool_response.pointer_mut("/file/startLine")
                && let Some(number) = line.as_i64()
            {
                // The client numbers what it shows, and a hint stands above the first line.
                *line = (number - 1).into();
            }
            if path == "/stdout"
                && let Some(response) = event.tool_response.as_object_mut()
            {
                // Otherwise the client would put its own preview around the text.
                response.shift_remove(SPILLED);
                response.shift_remove(SPILLED_SIZE);
            }
        }
    }
    let output = is_shorter.then(|| {
        let answer = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": event.tool_response}});
        answer.to_string()
    });
    Ok(Answer { output, rows })
}

/// A row of the journal for a text of `length` bytes.
fn row(event: &Event, length: usize, transcript: Option<&Path>) -> Row {
    let name = Agent::ClaudeCode.name();
    Row {
        transcript: transcript.map(Path::to_owned),
        ..Row::new(name, &event.session_id, &event.tool_name, length as u64)
    }
}

/// Returns true if the tool has read content of the store.
fn reads_store(event: &Event, surroundings: &Surroundings) -> bool {
    let (paths, commands): (&[&str], &[&str]) = match event.tool_name.as_str() {
        "Bash" => (&[], &["command"]),
        _ => (&["file_path", "path", "notebook_path"], &[]),
    };
    surroundings.reads_store(&event.cwd, &event.tool_input, paths, commands)
}

/// The tools whose responses have such texts, as a pattern for the client's settings. For other tools,
/// the client sends no events.
pub(crate) const TOOLS: &str = "Bash|Read|Grep|WebFetch|Task|Agent|mcp__.*";

/// JSON pointers to the texts of a response that the model is shown and that the client lets a hook
/// replace. Other texts, such as the original file in the response of an edit, stay.
fn texts(tool: &str, response: &Value) -> Vec<String> {
    let fixed = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    match tool {
        "Bash" if response["isImage"] != json!(true) => fixed(&["/stdout", "/stderr"]),
        "Read" if response["type"] == json!("text") => fixed(&["/file/content"]),
        "Grep" => fixed(&["/content"]),
        "WebFetch" => fixed(&["/result"]),
        "Task" | "Agent" => blocks(&response["content"], "/content"),
        _ if tool.starts_with("mcp__") => match response {
            Value::String(_) => fixed(&[""]),
            Value::Object(_) => blocks(&response["content"], "/content"),
            _ => blocks(response, ""),
        },
        _ => Vec::new(),
    }
}

/// Pointers to the texts in a list of blocks, which is at `path`.
fn blocks(list: &Value, path: &str) -> Vec<String> {
    let blocks = list.as_array().into_iter().flatten().enumerate();
    let texts = blocks.filter(|(_, block)| block["type"] == json!("text"));
    texts.map(|(at, _)| format!("{path}/{at}/text")).collect()
}

/// The file to which the client has spilled the output: named by the response of its own shell, and
/// a result file in its own folder.
fn spilled(event: &Event, surroundings: &Surroundings) -> Option<PathBuf> {
    if event.tool_name != "Bash" {
        return None;
    }
    let named = Path::new(event.tool_response.get(SPILLED)?.as_str()?);
    let file = surroundings.file_of_agent("projects", named)?;
    let is_result = file.parent()?.file_name()? == "tool-results";
    is_result.then_some(file)
}
