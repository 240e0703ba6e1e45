//! Responses: each call has one output, anywhere after it.

use serde_json::Value;

use super::rules::{InvalidMessage, all_answered, answer, content, each, require, shown, text};

pub(super) fn validate(items: &[Value]) -> Result<(), InvalidMessage> {
    // Calls without an output yet: kind, id and index.
    let mut open: Vec<((bool, &str), usize)> = Vec::new();
    each(items, |at, item| {
        require(item.is_object(), "an item must be an object")?;
        let kind = if item.get("type").is_some() {
            text(item, "type")?
        } else {
            "message"
        };
        let is_custom = kind.starts_with("custom_");
        match kind {
            "message" => message(item)?,
            "function_call" | "custom_tool_call" => {
                text(item, "name")?;
                text(item, if is_custom { "input" } else { "arguments" })?;
                open.push(((is_custom, text(item, "call_id")?), at));
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = text(item, "call_id")?;
                let problem = || format!("no open call before it has the id {}", shown(id));
                answer(&mut open, (is_custom, id), problem)?;
                content(item.get("output"), "output", part)?;
            }
            _ => {}
        }
        Ok(())
    })?;
    let first = open.first().map(|((_, id), at)| (*id, *at));
    all_answered(first.as_ref(), "has no output")
}

fn message(item: &Value) -> Result<(), String> {
    let role = text(item, "role")?;
    require(
        matches!(role, "user" | "assistant" | "system" | "developer"),
        "`role` must be user, assistant, system or developer",
    )?;
    content(item.get("content"), "content", |said| {
        match text(said, "type")? {
            "output_text" => text(said, "text").map(drop),
            "refusal" => text(said, "refusal").map(drop),
            _ => part(said),
        }
    })
}

fn part(part: &Value) -> Result<(), String> {
    match text(part, "type")? {
        "input_text" => text(part, "text").map(drop),
        "input_image" => require(
            has_one(part, &["image_url", "file_id"]),
            "an image must have a URL or an id",
        ),
        "input_file" => require(
            has_one(part, &["file_data", "file_url", "file_id"]),
            "a file must have data, a URL or an id",
        ),
        kind => Err(format!("a part can't have the type {} here", shown(kind))),
    }
}

fn has_one(part: &Value, fields: &[&str]) -> bool {
    fields
        .iter()
        .any(|field| part.get(field).is_some_and(Value::is_string))
}
