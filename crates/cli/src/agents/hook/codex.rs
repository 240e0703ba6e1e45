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
/// Maximum length in bytes of the fields beside a long text, and of a text that is not long.
const SMALL: usize = 500;

pub(super) async fn answer(event: &Event, hook: &Hook<'_>) -> Result<Answer, HookError> {
    let text = text(&event.tool_response).filter(|_| event.hook_event_name == "PostToolUse");
    let Some(text) = text else {
        return Ok(Answer::default());
    };
    let id = event.tool_use_id.clone();
    let is_failed = event.tool_response["isError"] == true;
    let is_of_server = event.tool_name.starts_with("mcp__");
    let text = EventText {
        shown: text.len().min(OWN_LIMIT),
        stays: is_failed || !is_of_server || id.starts_with(FROM_PROGRAM),
        ..EventText::new(id, text)
    };
    let (shorter, row) = hook.shorten(event, text).await?;
    let output = shorter.map(|shorter| json!({"decision": "block", "reason": shorter}));
    Ok(Answer::of(output, row))
}

/// The text of a response, as the client would show it, but with its lines. `None` if there is something else in it.
fn text(response: &Value) -> Option<String> {
    if let Value::String(text) = response {
        return Some(text.clone());
    }
    // The client shows structured content alone, if there is any.
    match &response["structuredContent"] {
        Value::Null => {}
        structured => {
            let whole = || structured.to_string();
            return Some(with_lines(structured.clone()).unwrap_or_else(whole));
        }
    }
    let blocks = response["content"].as_array()?.iter();
    let texts: Option<Vec<&str>> = blocks
        .map(|block| block["text"].as_str().filter(|_| block["type"] == "text"))
        .collect();
    Some(texts?.join("\n"))
}

/// The one long text of structured content with its lines, below the small fields if there are any. `None` if there is
/// more in it.
fn with_lines(mut structured: Value) -> Option<String> {
    let mut fields = structured.as_object_mut()?.values_mut();
    let is_long = |field: &Value| field.as_str().is_some_and(|text| text.len() > SMALL);
    let long = fields.find(|field| is_long(field))?;
    let text = std::mem::replace(long, "…".into());
    let text = text.as_str()?;
    match structured.to_string() {
        _ if structured.as_object()?.len() == 1 => Some(text.to_owned()),
        small if small.len() <= SMALL => Some(format!("{small}\n{text}")),
        _ => None,
    }
}
