//! Chat completions: tool messages directly follow the assistant message whose calls they answer,
//! one for each call.

use serde_json::Value;

use super::rules::{InvalidMessage, all_answered, answer, content, each, require, shown, text};

pub(super) fn validate(messages: &[Value]) -> Result<(), InvalidMessage> {
    // The calls of the last assistant message that have no result yet, each with its index.
    let mut open: Vec<(&str, usize)> = Vec::new();
    each(messages, |at, message| {
        let role = text(message, "role")?;
        if role == "tool" {
            let id = text(message, "tool_call_id")?;
            let problem = "no open call of the preceding assistant message has the id";
            answer(&mut open, id, || format!("{problem} {}", shown(id)))?;
        } else {
            all_answered(open.first(), "has no tool message directly after it")?;
        }
        shape(message, role)?;
        if role == "assistant" {
            let calls = message
                .get("tool_calls")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let ids = calls.filter_map(|call| call.get("id")?.as_str());
            open = ids.map(|id| (id, at)).collect();
        }
        Ok(())
    })?;
    all_answered(open.first(), "has no tool message")
}

fn shape(message: &Value, role: &str) -> Result<(), String> {
    let said = message.get("content");
    match role {
        "system" | "developer" | "user" | "tool" => content(said, "content", part),
        "function" => text(message, "name").and_then(|_| content(said, "content", part)),
        "assistant" => {
            let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
            let has = |field: &str| message.get(field).is_some_and(|value| !value.is_null());
            if !has("content") {
                let instead = ["tool_calls", "function_call", "refusal", "audio"];
                require(
                    instead.into_iter().any(has),
                    "an assistant message must have content or tool calls",
                )?;
            } else {
                content(said, "content", part)?;
            }
            let Some(calls) = calls else { return Ok(()) };
            let calls = calls
                .as_array()
                .filter(|calls| !calls.is_empty())
                .ok_or("`tool_calls` must be a non-empty list")?;
            calls.iter().try_for_each(call)
        }
        _ => Err("`role` must be system, developer, user, assistant or tool".to_owned()),
    }
}

fn call(call: &Value) -> Result<(), String> {
    text(call, "id")?;
    match (call.get("function"), call.get("custom")) {
        (Some(function), _) => text(function, "name")
            .and(text(function, "arguments"))
            .map(drop),
        (None, Some(custom)) => text(custom, "name").and(text(custom, "input")).map(drop),
        (None, None) => Err("a call must have a `function`".to_owned()),
    }
}

fn part(part: &Value) -> Result<(), String> {
    match text(part, "type")? {
        "text" => text(part, "text").map(drop),
        "image_url" => text(part.get("image_url").unwrap_or(&Value::Null), "url").map(drop),
        _ => Ok(()),
    }
}
