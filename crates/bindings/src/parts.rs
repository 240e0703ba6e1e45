//! Content parts of a result, told from rows of data that have a `type` too.

use serde_json::{Map, Value};

/// Fields that any part may have.
const ANYWHERE: [&str; 7] = [
    "type",
    "annotations",
    "cache_control",
    "extras",
    "_meta",
    "meta",
    "prompt_cache_breakpoint",
];

type Check = fn(&Value) -> bool;

/// Kinds of media that MCP and LangChain spell alike.
const MEDIA: &str = "image audio file";
const BESIDE_DATA: &str = "mimeType mime_type source_type metadata";
const BESIDE_URL: &str = "mime_type source_type metadata";
/// Of parts that another model of Google has written.
const OF_THOUGHTS: &str = "thought thoughtSignature thought_signature";

/// The kinds of parts by their `type`, or one of several: the field with the content and what it must be, and the fields
/// that may stand beside it. They are those of the providers, of MCP and of LangChain.
const KINDS: [(&str, &str, Check, &str); 23] = [
    ("", "inlineData", Value::is_object, OF_THOUGHTS),
    ("", "inline_data", Value::is_object, OF_THOUGHTS),
    ("", "fileData", Value::is_object, OF_THOUGHTS),
    ("", "file_data", Value::is_object, OF_THOUGHTS),
    ("", "text", Value::is_string, OF_THOUGHTS),
    ("text", "text", Value::is_string, "citations logprobs"),
    ("input_text", "text", Value::is_string, ""),
    ("output_text", "text", Value::is_string, "logprobs"),
    ("image", "source", Value::is_object, ""),
    (MEDIA, "data", Value::is_string, BESIDE_DATA),
    (MEDIA, "base64", Value::is_string, "mime_type"),
    (MEDIA, "url", Value::is_string, BESIDE_URL),
    ("image_url", "image_url", is_url, ""),
    (
        "input_image",
        "image_url",
        Value::is_string,
        "detail file_id",
    ),
    (
        "input_image",
        "file_id",
        Value::is_string,
        "detail image_url",
    ),
    ("input_audio", "input_audio", Value::is_object, ""),
    (
        "document",
        "source",
        Value::is_object,
        "title context citations",
    ),
    ("file", "file", Value::is_object, ""),
    ("input_file", "file_id", Value::is_string, "detail"),
    (
        "input_file",
        "file_data",
        Value::is_string,
        "filename detail",
    ),
    (
        "input_file",
        "file_url",
        Value::is_string,
        "filename detail",
    ),
    ("resource", "resource", Value::is_object, ""),
    (
        "resource_link",
        "uri",
        Value::is_string,
        "name title description mimeType size icons",
    ),
];

fn is_url(value: &Value) -> bool {
    value.is_string() || value.is_object()
}

/// Returns true if all items of a list are content parts. Texts without a type are Gemini's only beside its media.
pub(crate) fn are_parts(list: &str) -> bool {
    let list = serde_json::from_str::<Vec<Map<String, Value>>>(list);
    list.is_ok_and(|items| {
        let bare = || items.iter().filter(|item| !item.contains_key("type"));
        let has_media = bare().any(|item| !item.contains_key("text"));
        !items.is_empty() && items.iter().all(is_part) && (has_media || bare().next().is_none())
    })
}

fn is_part(fields: &Map<String, Value>) -> bool {
    let kind = match fields.get("type") {
        None => "",
        Some(kind) => kind.as_str().unwrap_or("-"),
    };
    match kind {
        "search_result" => fields.get("content").is_some_and(Value::is_array),
        "tool_reference" => fields.get("tool_name").is_some_and(Value::is_string),
        _ => KINDS.iter().any(|(known, content, is_right, beside)| {
            let is_in = |names: &str, name: &str| names.split(' ').any(|one| one == name);
            let may_stand = |(name, value): (&String, &Value)| match name.as_str() {
                // Those of a database would be lost.
                "id" => value.as_str().is_some_and(|id| id.starts_with("lc_")),
                name => name == *content || ANYWHERE.contains(&name) || is_in(beside, name),
            };
            is_in(known, kind)
                && fields.get(*content).is_some_and(is_right)
                && fields.iter().all(may_stand)
        }),
    }
}
