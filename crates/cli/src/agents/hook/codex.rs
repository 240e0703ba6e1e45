//! Events of Codex.
//!
//! The client lets a hook replace a result by blocking it: the model is shown the reason in its place. A
//! command's output is already cut when the hook gets it, and lacks the exit code. So only results of MCP
//! tools are replaced, which the hook gets whole. If the model calls tools from a program of its own, a
//! blocked call would end the program, so nothing is replaced there.

use std::path::PathBuf;

use offcut::{ToolCall, ToolReduction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::error::HookError;
use super::event::{parse, session, shorten};
use super::surroundings::Surroundings;
use crate::agents::Agent;
use crate::agents::journal::Row;

/// The tools whose results are replaced, and the shell, which reads stored ones, as a pattern for the client's
/// settings.
pub(crate) const TOOLS: &str = "Bash|mcp__.*";

/// The start of the ids of calls that the model makes from a program of its own.
const FROM_PROGRAM: &str = "exec-";
/// Length in bytes to which the client cuts a result under the lowest of its settings.
const OWN_LIMIT: usize = 10_000;

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
}

pub(super) async fn answer(
    event: &[u8],
    reduction: &ToolReduction,
    surroundings: &Surroundings,
) -> Result<Answer, HookError> {
    let event: Event = parse(event)?;
    if event.hook_event_name != "PostToolUse" {
        return Ok(Answer::default());
    }
    let Some(text) = text(&event.tool_response) else {
        return Ok(Answer::default());
    };
    let (name, id) = (Agent::Codex.name(), &event.tool_use_id);
    let length = text.len().min(OWN_LIMIT);
    let row = Row::new(name, &event.session_id, &event.tool_name, length as u64);
    let paths = ["path", "file_path", "filePath"];
    if surroundings.reads_store(&event.cwd, &event.tool_input, &paths, &["command"]) {
        return Ok(Answer::of(None, row.read()));
    }
    let is_own_hint = surroundings.is_own_hint(&text);
    let is_replaceable = event.tool_name.starts_with("mcp__") && !id.starts_with(FROM_PROGRAM);
    if is_own_hint || !is_replaceable {
        return Ok(Answer::of(None, row));
    }
    let session = session(reduction, &event.session_id, event.agent_id.as_deref());
    let call = ToolCall::new(id, &event.tool_name, event.tool_input.to_string());
    let shorter = shorten(&session, &call, text).await?;
    // The client may show less than the preview of the whole.
    let Some(shorter) = shorter.filter(|shorter| shorter.len() < length) else {
        return Ok(Answer::of(None, row));
    };
    let row = row.shortened(shorter.len());
    let output = json!({"decision": "block", "reason": shorter}).to_string();
    Ok(Answer::of(Some(output), row))
}

/// The text of a response, as the client would show it. `None` if there is something else in it.
fn text(response: &Value) -> Option<String> {
    if let Value::String(text) = response {
        return Some(text.clone());
    }
    // The client shows structured content alone, if there is any.
    match &response["structuredContent"] {
        Value::Null => {}
        structured => return Some(structured.to_string()),
    }
    let blocks = response["content"].as_array()?.iter();
    let texts: Option<Vec<&str>> = blocks
        .map(|block| block["text"].as_str().filter(|_| block["type"] == "text"))
        .collect();
    Some(texts?.join("\n"))
}
