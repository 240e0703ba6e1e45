//! Chat-completions messages as their wire JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::blocks::{Blocks, read_url};
use super::json::{Edit, New, Step, View};
use super::wire_json::WireJson;
use super::{Arguments, Call, Data, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The format of OpenAI chat-completions messages, and of every provider that speaks it, as
/// [`serde_json::Value`].
///
/// Unknown fields stay as they are. The API has no error mark for results, so none is seen and none
/// is written. The deprecated `function_call` and its `function` messages are understood too. Order
/// of keys: see the crate's documentation on `preserve_order`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat;

impl OpenAiChat {
    /// The message that answers `call` with `content`.
    ///
    /// One text becomes a string, which every provider accepts; anything else becomes an array of
    /// parts.
    #[must_use]
    pub fn tool_message(call: &ToolCall, content: impl Into<Vec<Part>>) -> Value {
        json!({"role": "tool", "tool_call_id": call.id, "content": Self::content(content.into())})
    }

    /// The calls of an assistant message.
    #[must_use]
    pub fn tool_calls(message: &Value) -> Vec<ToolCall> {
        super::tool_calls(&Self, message)
    }
}

impl WireJson for OpenAiChat {
    fn see<'m, V: View<'m>>(self, message: V, see: &mut dyn FnMut(Piece<'m>)) {
        let fields = Fields::of(message);
        match fields.role {
            "assistant" => {
                see(Piece::Role(Role::Assistant));
                fields
                    .calls()
                    .for_each(|call| see(Piece::Call(read_call(call))));
                for text in fields.thoughts.into_iter().flatten() {
                    see(Piece::Content(PartRef::Text(text)));
                }
            }
            "tool" | "function" => {
                see(Piece::Role(Role::Tool));
                let (id, name) = (fields.tool_call_id, fields.name);
                see(Piece::Result(ResultHead {
                    id,
                    name,
                    is_error: false,
                    is_fixed: false,
                }));
            }
            "user" => see(Piece::Role(Role::User)),
            _ => see(Piece::Role(Role::System)),
        }
        match fields.role {
            "tool" | "function" => Self::show_slot(fields.content, see),
            _ => Self::show(fields.content, see),
        }
    }

    fn result<'m, V: View<'m>>(
        self,
        message: V,
        slot: usize,
        parts: Vec<Part>,
    ) -> Option<Vec<Edit<'m>>> {
        let is_there = slot == 0 && matches!(message.text("role"), "tool" | "function");
        is_there.then(|| Self::replace(message, Vec::new(), "content", parts))
    }

    fn arguments<'m, V: View<'m>>(
        self,
        message: V,
        call: usize,
        arguments: String,
    ) -> Option<Vec<Edit<'m>>> {
        if message.text("role") != "assistant" {
            return None;
        }
        let calls = message
            .get("tool_calls")
            .filter(|calls| calls.items().next().is_some());
        let (raw, mut path) = match calls {
            Some(calls) => (
                calls.items().nth(call)?,
                vec![Step::Field("tool_calls"), Step::Item(call)],
            ),
            None if call == 0 => (
                message.get("function_call")?,
                vec![Step::Field("function_call")],
            ),
            None => return None,
        };
        // As they were read: a function's arguments are JSON as text, a custom tool's input is free
        // text.
        let [function, custom] = raw.pick(["function", "custom"]);
        let is_function = function.is_some() || custom.is_none();
        path.extend(match (function, custom) {
            (Some(_), _) => Some(Step::Field("function")),
            (None, Some(_)) => Some(Step::Field("custom")),
            (None, None) => None,
        });
        let holder = function.or(custom).unwrap_or(raw);
        let field = if is_function && !holder.has("input") {
            "arguments"
        } else {
            "input"
        };
        holder
            .is_object()
            .then(|| vec![Edit::set(path, field, New::Value(Value::String(arguments)))])
    }
}

/// The fields of a message that matter.
struct Fields<'m, V> {
    role: &'m str,
    content: Option<V>,
    tool_calls: Option<V>,
    function_call: Option<V>,
    /// Reasoning, under its two names, and a refusal.
    thoughts: [Option<&'m str>; 3],
    tool_call_id: &'m str,
    name: Option<&'m str>,
}

impl<'m, V: View<'m>> Fields<'m, V> {
    fn of(message: V) -> Self {
        let [
            role,
            content,
            tool_calls,
            function_call,
            reasoning_content,
            reasoning,
            refusal,
            tool_call_id,
            name,
        ] = message.pick([
            "role",
            "content",
            "tool_calls",
            "function_call",
            "reasoning_content",
            "reasoning",
            "refusal",
            "tool_call_id",
            "name",
        ]);
        let text = |field: Option<V>| field.and_then(V::as_str);
        Self {
            role: text(role).unwrap_or_default(),
            content,
            tool_calls,
            function_call,
            thoughts: [reasoning_content, reasoning, refusal].map(text),
            tool_call_id: text(tool_call_id).unwrap_or_default(),
            name: text(name),
        }
    }

    fn calls(&self) -> impl Iterator<Item = V> {
        let calls = self
            .tool_calls
            .filter(|calls| calls.items().next().is_some());
        let legacy = if calls.is_none() {
            self.function_call.filter(|call| call.is_object())
        } else {
            None
        };
        calls.into_iter().flat_map(V::items).chain(legacy)
    }
}

fn read_call<'m, V: View<'m>>(raw: V) -> Call<'m> {
    // Gemini's compatible endpoint signs calls in `extra_content`.
    let [id, function, custom, extra_content] =
        raw.pick(["id", "function", "custom", "extra_content"]);
    let [name, arguments, input] =
        function
            .or(custom)
            .unwrap_or(raw)
            .pick(["name", "arguments", "input"]);
    let text = |field: Option<V>| field.and_then(V::as_str).unwrap_or_default();
    let arguments = Arguments::of(arguments.or(input));
    Call {
        id: text(id),
        name: text(name),
        arguments,
        is_signed: extra_content.is_some(),
        is_fixed: false,
    }
}

impl Blocks for OpenAiChat {
    fn is_text(kind: &str) -> bool {
        kind == "text"
    }

    fn read<'m, V: View<'m>>(part: V) -> PartRef<'m> {
        let opaque = || PartRef::Opaque(part.json());
        let url = match part.text("type") {
            "refusal" => {
                return part
                    .get("refusal")
                    .and_then(V::as_str)
                    .map_or_else(opaque, PartRef::Text);
            }
            "image_url" => part.get("image_url").and_then(|image| {
                if image.is_object() {
                    image.get("url")
                } else {
                    Some(image)
                }
            }),
            // A file with a name is more than its bytes.
            "file" => part
                .get("file")
                .filter(|file| file.fields().count() == 1)
                .and_then(|file| file.get("file_data")),
            "input_audio" => {
                let [data, format] = part
                    .get("input_audio")
                    .map_or([None; 2], |audio| audio.pick(["data", "format"]));
                let mime = match format.and_then(V::as_str) {
                    Some("mp3") => "audio/mpeg",
                    _ => "audio/wav",
                };
                let media = |data| PartRef::Media {
                    mime,
                    data: Data::Base64(data),
                };
                return data.and_then(V::as_str).map_or_else(opaque, media);
            }
            _ => None,
        };
        url.and_then(V::as_str)
            .and_then(read_url)
            .unwrap_or_else(opaque)
    }

    fn write(part: Part) -> Value {
        write_part(part)
    }
}

fn write_part(part: Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Json(value) => json!({"type": "text", "text": value.to_string()}),
        Part::Media { mime, data } => {
            let base64 = STANDARD.encode(&data);
            match mime.as_str() {
                "audio/mpeg" => {
                    json!({"type": "input_audio", "input_audio": {"format": "mp3", "data": base64}})
                }
                "audio/wav" => {
                    json!({"type": "input_audio", "input_audio": {"format": "wav", "data": base64}})
                }
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
    use crate::format::Format;

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
        Call(Call { id: "a", name: "grep", arguments: Text("{}"), is_signed: false, is_fixed: false })
        Call(Call { id: "b", name: "patch", arguments: Text("*** Begin"), is_signed: false, is_fixed: false })
        Content(Text("Looking."))
        "#);
        insta::assert_snapshot!(seen(&json!({"role": "tool", "tool_call_id": "a", "content": [
            {"type": "text", "text": "one"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
            {"type": "new", "x": 1},
        ]})), @r#"
        Role(Tool)
        Result(ResultHead { id: "a", name: None, is_error: false, is_fixed: false })
        Content(Text("one"))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Content(Link { mime: None, url: "https://example.org/x.png" })
        Content(Opaque(Object {"type": String("new"), "x": Number(1)}))
        "#);
        insta::assert_snapshot!(seen(&json!({"role": "function", "name": "f", "content": "r"})), @r#"
        Role(Tool)
        Result(ResultHead { id: "", name: Some("f"), is_error: false, is_fixed: false })
        Content(Text("r"))
        "#);
    }

    #[test]
    fn malformed_messages_are_seen_as_what_they_are() {
        for odd in [
            json!(null),
            json!([]),
            json!({}),
            json!({"role": 1}),
            json!({"role": "tool", "content": {"a": 1}}),
        ] {
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
        let mut legacy =
            json!({"role": "assistant", "function_call": {"name": "f", "arguments": "1"}});
        OpenAiChat.replace_arguments(&mut legacy, 0, "{}".into());
        assert_eq!(legacy["function_call"]["arguments"], "{}");
    }
}
