//! Events of Codex.
//!
//! The client lets a hook replace a result by blocking it: the model is shown the reason in its place. A
//! command's output is already cut when the hook gets it, and lacks the exit code. So only results of MCP
//! tools are replaced, which the hook gets whole, unless they have images, which a reason can't have. If the
//! model calls tools from a program of its own, a blocked call would end the program, so nothing is replaced there.

use serde_json::Value;

use super::event::{Event, EventText};

/// The start of the ids of calls that the model makes from a program of its own.
const FROM_PROGRAM: &str = "exec-";
/// Length in bytes to which the client cuts a result under the lowest of its settings.
const OWN_LIMIT: usize = 10_000;
/// Maximum length in bytes of the fields beside a long text, and of a text that is not long.
const SMALL: usize = 500;

pub(super) fn text(event: &Event) -> Option<EventText> {
    let text = shown(&event.tool_response)?;
    let id = &event.tool_use_id;
    let is_failed = event.tool_response["isError"] == true;
    let is_of_server = event.tool_name.starts_with("mcp__");
    Some(EventText {
        shown: text.len().min(OWN_LIMIT),
        stays: is_failed || !is_of_server || id.starts_with(FROM_PROGRAM),
        ..EventText::new(id, vec![text])
    })
}

/// The text of a response, as the client would show it, but with its lines. `None` if an image or the like is in it.
fn shown(response: &Value) -> Option<String> {
    if let Value::String(text) = response {
        return Some(text.clone());
    }
    // The client shows structured content alone, if there is any.
    let structured = &response["structuredContent"];
    if !structured.is_null() {
        return with_lines(structured.clone()).or_else(|| Some(structured.to_string()));
    }
    let blocks = response["content"].as_array()?.iter();
    let texts: Option<Vec<String>> = blocks.map(of_block).collect();
    Some(texts?.join("\n"))
}

/// The text of a block. The client shows resources and links as JSON.
fn of_block(block: &Value) -> Option<String> {
    let resource = &block["resource"];
    match block["type"].as_str()? {
        "text" => Some(block["text"].as_str()?.to_owned()),
        "resource" if resource["text"].is_string() => {
            with_lines(resource.clone()).or_else(|| Some(block.to_string()))
        }
        "resource_link" => Some(block.to_string()),
        _ => None,
    }
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
