//! Chat-completions messages as their wire JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::blocks::{Blocks, read_url, text_of};
use super::{Arguments, Call, Data, Format, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The format of OpenAI chat-completions messages, and of every provider that speaks it, as [`serde_json::Value`].
///
/// Unknown fields stay as they are. The API has no error mark for results, so none is seen and none is written. The deprecated
/// `function_call` and its `function` messages are understood too. Order of keys: see the crate's documentation on
/// `preserve_order`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat;

impl OpenAiChat {
    /// The message that answers `call` with `content`.
    ///
    /// One text becomes a string, which every provider accepts; anything else becomes an array of parts.
    #[must_use]
    pub fn tool_message(call: &ToolCall, content: impl Into<Vec<Part>>) -> Value {
        json!({"role": "tool", "tool_call_id": call.id, "content": BLOCKS.content(content.into())})
    }

    /// The calls of an assistant message.
    #[must_use]
    pub fn tool_calls(message: &Value) -> Vec<ToolCall> {
        super::tool_calls(&Self, message)
    }
}

impl Format for OpenAiChat {
    type Message = Value;

    fn visit<'m>(&self, message: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
        let fields = Fields::of(message);
        match fields.role {
            "assistant" => {
                see(Piece::Role(Role::Assistant));
                for call in fields.calls() {
                    see(Piece::Call(read_call(call)));
                }
                for text in [fields.reasoning_content, fields.reasoning, fields.refusal].into_iter().flatten() {
                    see(Piece::Content(PartRef::Text(text)));
                }
            }
            "tool" | "function" => {
                see(Piece::Role(Role::Tool));
                see(Piece::Result(ResultHead { id: fields.tool_call_id, name: fields.name, is_error: false }));
            }
            "user" => see(Piece::Role(Role::User)),
            _ => see(Piece::Role(Role::System)),
        }
        match fields.role {
            "tool" | "function" => BLOCKS.visit_slot(fields.content, see),
            _ => BLOCKS.visit(fields.content, see),
        }
    }

    fn replace_result(&self, message: &mut Value, slot: usize, parts: Vec<Part>) {
        if slot != 0 || !matches!(text_of(message, "role"), "tool" | "function") {
            return;
        }
        if let Value::Object(fields) = message {
            BLOCKS.replace(fields, "content", parts);
        }
    }

    fn replace_arguments(&self, message: &mut Value, call: usize, arguments: String) {
        if text_of(message, "role") != "assistant" {
            return;
        }
        let raw = match message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            Some(calls) if !calls.is_empty() => calls.get_mut(call),
            _ if call == 0 => message.get_mut("function_call"),
            _ => None,
        };
        let Some(Value::Object(raw)) = raw else { return };
        // As they were read: a function's arguments are JSON as text, a custom tool's input is free text.
        let is_function = raw.contains_key("function") || !raw.contains_key("custom");
        let holder = match (raw.contains_key("function"), raw.contains_key("custom")) {
            (true, _) => raw.get_mut("function").and_then(Value::as_object_mut),
            (false, true) => raw.get_mut("custom").and_then(Value::as_object_mut),
            (false, false) => Some(raw),
        };
        if let Some(holder) = holder {
            let field = if is_function && !holder.contains_key("input") { "arguments" } else { "input" };
            holder.insert(field.into(), Value::String(arguments));
        }
    }
}

const BLOCKS: Blocks = Blocks { is_text: |kind| kind == "text", read: read_part, write: write_part };

/// The fields of a message that matter, found in one go: a pass looks at every message, and looking each field up by itself
/// would take most of its time.
#[derive(Default)]
struct Fields<'m> {
    role: &'m str,
    content: Option<&'m Value>,
    tool_calls: Option<&'m Value>,
    function_call: Option<&'m Value>,
    reasoning_content: Option<&'m str>,
    reasoning: Option<&'m str>,
    refusal: Option<&'m str>,
    tool_call_id: &'m str,
    name: Option<&'m str>,
}

impl<'m> Fields<'m> {
    fn of(message: &'m Value) -> Self {
        let mut found = Self::default();
        for (name, value) in message.as_object().into_iter().flatten() {
            match name.as_str() {
                "role" => found.role = value.as_str().unwrap_or_default(),
                "content" => found.content = Some(value),
                "tool_calls" => found.tool_calls = Some(value),
                "function_call" => found.function_call = Some(value),
                "reasoning_content" => found.reasoning_content = value.as_str(),
                "reasoning" => found.reasoning = value.as_str(),
                "refusal" => found.refusal = value.as_str(),
                "tool_call_id" => found.tool_call_id = value.as_str().unwrap_or_default(),
                "name" => found.name = value.as_str(),
                _ => {}
            }
        }
        found
    }

    fn calls(&self) -> impl Iterator<Item = &'m Value> {
        let calls = self.tool_calls.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let legacy = if calls.is_empty() { self.function_call.filter(|call| call.is_object()) } else { None };
        calls.iter().chain(legacy)
    }
}

fn read_call(raw: &Value) -> Call<'_> {
    let (mut id, mut is_signed, mut function, mut custom) = ("", false, None, None);
    for (name, value) in raw.as_object().into_iter().flatten() {
        match name.as_str() {
            "id" => id = value.as_str().unwrap_or_default(),
            "function" => function = Some(value),
            "custom" => custom = Some(value),
            // Gemini's compatible endpoint signs calls in it.
            "extra_content" => is_signed = true,
            _ => {}
        }
    }
    let (mut tool, mut arguments, mut input) = ("", None, None);
    for (name, value) in function.or(custom).unwrap_or(raw).as_object().into_iter().flatten() {
        match name.as_str() {
            "name" => tool = value.as_str().unwrap_or_default(),
            "arguments" => arguments = Some(value),
            "input" => input = Some(value),
            _ => {}
        }
    }
    let arguments = match arguments.or(input) {
        Some(Value::String(text)) => Arguments::Text(text),
        Some(value) => Arguments::Json(value),
        None => Arguments::Text(""),
    };
    Call { id, name: tool, arguments, is_signed }
}

fn read_part(part: &Value) -> PartRef<'_> {
    let url = match text_of(part, "type") {
        "refusal" => return part.get("refusal").and_then(Value::as_str).map_or(PartRef::Opaque(part), PartRef::Text),
        "image_url" => part.get("image_url").and_then(|image| image.get("url").unwrap_or(image).as_str()),
        // A file with a name is more than its bytes.
        "file" => match part.get("file").and_then(Value::as_object) {
            Some(file) if file.len() == 1 => file.get("file_data").and_then(Value::as_str),
            _ => None,
        },
        "input_audio" => {
            let audio = part.get("input_audio");
            let data = audio.and_then(|audio| audio.get("data")).and_then(Value::as_str);
            let mime = match audio.map(|audio| text_of(audio, "format")) {
                Some("mp3") => "audio/mpeg",
                _ => "audio/wav",
            };
            return data.map_or(PartRef::Opaque(part), |data| PartRef::Media { mime, data: Data::Base64(data) });
        }
        _ => None,
    };
    url.and_then(read_url).unwrap_or(PartRef::Opaque(part))
}

fn write_part(part: Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Json(value) => json!({"type": "text", "text": value.to_string()}),
        Part::Media { mime, data } => {
            let base64 = STANDARD.encode(&data);
            match mime.as_str() {
                "audio/mpeg" => json!({"type": "input_audio", "input_audio": {"format": "mp3", "data": base64}}),
                "audio/wav" => json!({"type": "input_audio", "input_audio": {"format": "wav", "data": base64}}),
                mime => {
                    let url = format!("data:{mime};base64,{base64}");
                    if mime.starts_with("image/") {
                        json!({"type": "image_url", "image_url": {"url": url}})
                    } else {
                        json!({"type": "file", "file": {"file_data": url}})
                    }
                }
            }
        }
        Part::Link { url, .. } => json!({"type": "image_url", "image_url": {"url": url}}),
        Part::Opaque(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(message: &Value) -> String {
        let mut out = String::new();
        OpenAiChat.visit(message, &mut |piece| out.push_str(&format!("{piece:?}\n")));
        out
    }

    #[test]
    fn what_is_seen_of_each_kind_of_message() {
        insta::assert_snapshot!(seen(&json!({"role": "assistant", "content": "Looking.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{}"}},
            {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
        ]})), @r#"
        Role(Assistant)
        Call(Call { id: "a", name: "grep", arguments: Text("{}"), is_signed: false })
        Call(Call { id: "b", name: "patch", arguments: Text("*** Begin"), is_signed: false })
        Content(Text("Looking."))
        "#);
        insta::assert_snapshot!(seen(&json!({"role": "tool", "tool_call_id": "a", "content": [
            {"type": "text", "text": "one"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
            {"type": "new", "x": 1},
        ]})), @r#"
        Role(Tool)
        Result(ResultHead { id: "a", name: None, is_error: false })
        Content(Text("one"))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Content(Link { mime: None, url: "https://example.org/x.png" })
        Content(Opaque(Object {"type": String("new"), "x": Number(1)}))
        "#);
        insta::assert_snapshot!(seen(&json!({"role": "function", "name": "f", "content": "r"})), @r#"
        Role(Tool)
        Result(ResultHead { id: "", name: Some("f"), is_error: false })
        Content(Text("r"))
        "#);
    }

    #[test]
    fn malformed_messages_are_seen_as_what_they_are() {
        for odd in [json!(null), json!([]), json!({}), json!({"role": 1}), json!({"role": "tool", "content": {"a": 1}})]
        {
            assert!(seen(&odd).starts_with("Role("), "{odd}");
            let mut changed = odd.clone();
            OpenAiChat.replace_result(&mut changed, 1, vec![]);
            OpenAiChat.replace_arguments(&mut changed, 0, "{}".into());
            assert_eq!(changed, odd);
        }
    }

    #[test]
    fn l5_unknown_fields_and_cache_marks_stay() {
        let mut message = json!({"role": "tool", "tool_call_id": "a", "x": {"y": [1]}, "content": [
            {"type": "text", "text": "one"},
            {"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}},
        ]});
        OpenAiChat.replace_result(&mut message, 0, vec!["hint".into()]);
        assert_eq!(
            message,
            json!({"role": "tool", "tool_call_id": "a", "x": {"y": [1]}, "content": [
                {"type": "text", "text": "hint", "cache_control": {"type": "ephemeral"}},
            ]})
        );
    }

    #[test]
    fn arguments_are_replaced_where_they_stand() {
        let mut message = json!({"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"long\":1}"}, "x": 1},
        ]});
        OpenAiChat.replace_arguments(&mut message, 0, "{}".into());
        assert_eq!(
            message,
            json!({"role": "assistant", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "x": 1},
            ]})
        );
        let mut legacy = json!({"role": "assistant", "function_call": {"name": "f", "arguments": "1"}});
        OpenAiChat.replace_arguments(&mut legacy, 0, "{}".into());
        assert_eq!(legacy["function_call"]["arguments"], "{}");
    }
}
