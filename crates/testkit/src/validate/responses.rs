//! Responses: each call has one output, anywhere after it.

use serde_json::Value;

use super::rules::{InvalidMessage, content, invalid, require, shown, text};

pub(super) fn validate(items: &[Value]) -> Result<(), InvalidMessage> {
    // Calls without an output yet: kind, id and index.
    let mut open: Vec<(bool, &str, usize)> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let fail = |problem: String| invalid(at, problem);
        require(item.is_object(), "an item must be an object").map_err(fail)?;
        let kind = if item.get("type").is_some() {
            text(item, "type").map_err(fail)?
        } else {
            "message"
        };
        let is_custom = kind.starts_with("custom_");
        match kind {
            "message" => message(item).map_err(fail)?,
            "function_call" | "custom_tool_call" => {
                text(item, "name").map_err(fail)?;
                text(item, if is_custom { "input" } else { "arguments" }).map_err(fail)?;
                open.push((is_custom, text(item, "call_id").map_err(fail)?, at));
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = text(item, "call_id").map_err(fail)?;
                let Some(call) = open
                    .iter()
                    .position(|(custom, open, _)| (*custom, *open) == (is_custom, id))
                else {
                    return Err(invalid(
                        at,
                        format!("no open call before it has the id {}", shown(id)),
                    ));
                };
                open.remove(call);
                content(item.get("output"), "output", part).map_err(fail)?;
            }
            _ => {}
        }
    }
    match open.first() {
        Some((_, id, at)) => Err(invalid(
            *at,
            format!("the call {} has no output", shown(id)),
        )),
        None => Ok(()),
    }
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
