//! Events of Codex.
//!
//! The client lets a hook replace a result by blocking it: the model is shown the reason in its place. A
//! command's output is already cut when the hook gets it, and lacks the exit code. So only results of MCP
//! tools are replaced, which the hook gets whole. If the model calls tools from a program of its own, a
//! blocked call would end the program, so nothing is replaced there.

use serde_json::{Value, json};

use super::answer::Answer;
use super::error::HookError;
use super::event::{Event, EventText, Hook};

/// The start of the ids of calls that the model makes from a program of its own.
const FROM_PROGRAM: &str = "exec-";
/// Length in bytes to which the client cuts a result under the lowest of its settings.
const OWN_LIMIT: usize = 10_000;

pub(super) async fn answer(event: &Event, hook: &Hook<'_>) -> Result<Answer, HookError> {
    let text = text(&event.tool_response).filter(|_| event.hook_event_name == "PostToolUse");
    let Some(text) = text else {
        return Ok(Answer::default());
    };
    let id = event.tool_use_id.clone();
    let text = EventText {
        shown: text.len().min(OWN_LIMIT),
        stays: !event.tool_name.starts_with("mcp__") || id.starts_with(FROM_PROGRAM),
        ..EventText::new(id, text)
    };
    let (shorter, row) = hook.shorten(event, text).await?;
    let output = shorter.map(|shorter| json!({"decision": "block", "reason": shorter}));
    Ok(Answer::of(output, row))
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
