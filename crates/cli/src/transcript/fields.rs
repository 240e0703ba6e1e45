//! Access to fields of sessions, whatever they hold.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use offcut::{Part, ToolCall};
use serde_json::Value;

/// Returns the text of a field, or an empty one.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

/// Returns true if a field is `true`.
pub(super) fn is_true(value: &Value, field: &str) -> bool {
    value[field] == true
}

/// Iterates over a list in a field; empty if there is no list.
pub(super) fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value[field].as_array().into_iter().flatten()
}

/// Reads a call, with its id and its name in these fields.
pub(super) fn call(call: &Value, id: &str, name: &str) -> ToolCall {
    let arguments = call.get("arguments").map(Value::to_string);
    ToolCall::new(
        text(call, id),
        text(call, name),
        arguments.unwrap_or_default(),
    )
}

/// Reads content that is a text, or a list of texts and images. Calls and thoughts are left out.
pub(super) fn parts(content: &Value) -> Vec<Part> {
    match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Part::Text(text.clone())],
        Value::Array(blocks) => blocks.iter().filter_map(part).collect(),
        _ => Vec::new(),
    }
}

fn part(block: &Value) -> Option<Part> {
    if let Some(text) = block.as_str() {
        return Some(Part::Text(text.to_owned()));
    }
    match text(block, "type") {
        "text" => Some(Part::Text(text(block, "text").to_owned())),
        "thinking" | "toolCall" => None,
        _ => Some(media(block).unwrap_or_else(|| Part::Opaque(block.clone()))),
    }
}

/// Reads an image with its bytes or its URL.
fn media(block: &Value) -> Option<Part> {
    if let (Some(data), Some(mime)) = (block["data"].as_str(), block["mimeType"].as_str()) {
        return Some(Part::Media {
            mime: mime.to_owned(),
            data: STANDARD.decode(data).ok()?.into(),
        });
    }
    let source = block.get("source")?;
    Some(Part::Link {
        mime: source["media_type"].as_str().map(str::to_owned),
        url: source["path"].as_str()?.to_owned(),
    })
}
