//! Chat-completions messages as wire JSON.

use crate::json::{Edit, Step, View};
use serde_json::{Value, json};

use super::blocks::{
    Blocks, data_url, has_signature, is_for_program, is_signed, loads_tools, new_arguments,
    read_url,
};
use super::wire_json::{Edits, TextPlace, WireJson};
use super::{Arguments, Call, Data, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The format of OpenAI's chat-completions messages, and of every provider that uses them, as
/// [`serde_json::Value`].
///
/// Unknown fields stay as they are. The API has no error mark for results, so none is read and none
/// is written. The deprecated `function_call` and its `function` messages work too. For the order
/// of keys, see the crate's documentation on `preserve_order`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat;

impl OpenAiChat {
    /// The message that answers `call` with `content`: one text is a string, which every provider
    /// accepts; anything else is a list of parts.
    pub(super) fn message(call: &ToolCall, content: Vec<Part>) -> Value {
        json!({"role": "tool", "tool_call_id": call.id, "content": Self::content(content)})
    }
}

impl WireJson for OpenAiChat {
    fn see<'m, V: View<'m>>(self, message: V, see: &mut dyn FnMut(Piece<'m>)) {
        // Several fields in one go, since this runs for every message.
        let [role, content, id, name] = message.pick(["role", "content", "tool_call_id", "name"]);
        let text = |field: Option<V>| field.and_then(V::as_str);
        let [role, id, name] = [role, id, name].map(text);
        match role {
            Some("assistant") => {
                see(Piece::Role(Role::Assistant));
                let [fields, tool_calls, function_call, details, blocks, refusal] = message.pick([
                    "provider_specific_fields",
                    "tool_calls",
                    "function_call",
                    "reasoning_details",
                    "thinking_blocks",
                    "refusal",
                ]);
                // LiteLLM sends Anthropic's compactions back before all else of the message.
                let compactions = fields.and_then(|fields| fields.get("compaction_blocks"));
                for block in compactions.into_iter().flat_map(V::items) {
                    see(Piece::Content(PartRef::Opaque(block.json())));
                }
                let mut calls = calls(tool_calls, function_call).peekable();
                let are_signed = calls.peek().is_some()
                    && (has_signature(message)
                        || details.is_some_and(|details| {
                            is_signature(details) || details.items().any(is_signature)
                        }));
                calls.for_each(|call| {
                    let mut call = read_call(call);
                    call.is_signed |= are_signed;
                    see(Piece::Call(call));
                });
                // Gateways repeat the same thoughts in several fields, with other space around them.
                let fields = message.pick(REASONING);
                let mut plain: Vec<&str> = Vec::new();
                for thoughts in fields.into_iter().filter_map(text) {
                    if !plain.iter().any(|known| known.trim() == thoughts.trim()) {
                        plain.push(thoughts);
                    }
                }
                for text in plain.iter().copied().chain(text(refusal)) {
                    see(Piece::Content(PartRef::Text(text)));
                }
                let mut listed = Vec::new();
                for (list, names) in [(details, &["text", "summary"][..]), (blocks, &["thinking"])]
                {
                    let items = list.into_iter().flat_map(V::items);
                    let text = |item: V| names.iter().find_map(|name| item.get(name)?.as_str());
                    let is_new =
                        |text: &&str| plain.iter().all(|known| known.trim() != text.trim());
                    let thoughts: Vec<&str> = items.filter_map(text).filter(is_new).collect();
                    let is_known =
                        thoughts == listed || plain.iter().any(|text| is_whole(&thoughts, text));
                    if !is_known {
                        for text in &thoughts {
                            see(Piece::Content(PartRef::Text(text)));
                        }
                        listed = thoughts;
                    }
                }
                Self::show(content, see);
                show_images(message, see);
            }
            Some("tool" | "function") => {
                see(Piece::Role(Role::Tool));
                see(Piece::Result(ResultHead {
                    name,
                    is_fixed: loads_tools(content),
                    id: id.unwrap_or_default(),
                    ..ResultHead::default()
                }));
                Self::show_slot(content, see);
            }
            role => {
                let is_user = role == Some("user");
                see(Piece::Role(if is_user { Role::User } else { Role::System }));
                Self::show(content, see);
                show_images(message, see);
            }
        }
    }

    fn result<'m, V: View<'m>>(self, message: V, slot: usize, parts: Vec<Part>) -> Edits<'m> {
        let is_there = slot == 0
            && matches!(message.text("role"), "tool" | "function")
            && !loads_tools(message.get("content"));
        is_there.then(|| Self::replace(message, Vec::new(), "content", parts))
    }

    fn arguments<'m, V: View<'m>>(self, message: V, call: usize, new: String) -> Edits<'m> {
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
        let (holder, step, field) = holder(raw);
        path.extend(step.map(Step::Field));
        let old = holder.get(field);
        holder
            .is_object()
            .then(|| vec![Edit::set(path, field, new_arguments(old, new))])
    }

    fn text_at<'m, V: View<'m>>(self, message: V, nth: usize) -> Option<TextPlace> {
        let is_user = message.text("role") == "user";
        is_user.then(|| Self::nth_text(message.get("content"), nth))?
    }
}

/// Fields with a model's thoughts as text.
const REASONING: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "thinking",
    "reasoning_text",
];

/// The calls of a message, or its deprecated `function_call` if it has no others.
fn calls<'m, V: View<'m>>(
    tool_calls: Option<V>,
    function_call: Option<V>,
) -> impl Iterator<Item = V> {
    let calls = tool_calls.filter(|calls| calls.items().next().is_some());
    let legacy = function_call.filter(|call| calls.is_none() && call.is_object());
    calls.into_iter().flat_map(V::items).chain(legacy)
}

/// The object that has a call's name and arguments, its key in the call, and the key of the
/// arguments in it: a function's `arguments` are JSON as text, a custom tool's `input` is free text.
fn holder<'m, V: View<'m>>(call: V) -> (V, Option<&'static str>, &'static str) {
    match call.pick(["function", "custom"]) {
        [Some(function), _] => (function, Some("function"), "arguments"),
        [None, Some(custom)] => (custom, Some("custom"), "input"),
        [None, None] => (call, None, "arguments"),
    }
}

/// Returns true if a detail of the model's reasoning signs the calls of its message: it is encrypted,
/// or Gemini's.
fn is_signature<'m, V: View<'m>>(detail: V) -> bool {
    detail.text("type") == "reasoning.encrypted" || detail.text("format").starts_with("google")
}

/// Shows the images beside a message's content: base64 in Ollama's API, parts in OpenRouter's.
fn show_images<'m, V: View<'m>>(message: V, see: &mut dyn FnMut(Piece<'m>)) {
    for image in message.get("images").into_iter().flat_map(V::items) {
        let part = match image.as_str() {
            Some(data) => PartRef::Media {
                mime: "image/*",
                data: Data::Base64(data),
            },
            None => OpenAiChat::part(image),
        };
        see(Piece::Content(part));
    }
}

/// Returns true if texts are the parts of `whole`, but for space around them.
fn is_whole(texts: &[&str], whole: &str) -> bool {
    let rest = texts.iter().try_fold(whole.trim(), |rest, text| {
        rest.strip_prefix(text.trim()).map(str::trim_start)
    });
    rest == Some("")
}

fn read_call<'m, V: View<'m>>(raw: V) -> Call<'m> {
    let (holder, _, field) = holder(raw);
    let arguments = Arguments::of(holder.get(field));
    Call {
        is_signed: is_signed(raw) || is_signed(holder),
        is_for_program: is_for_program(raw) || is_for_program(holder),
        ..Call::new(raw.text("id"), holder.text("name"), arguments)
    }
}

impl Blocks for OpenAiChat {
    const TEXT: &'static str = "text";

    fn text_field(kind: &str) -> Option<&'static str> {
        match kind {
            "text" => Some("text"),
            "refusal" => Some("refusal"),
            _ => None,
        }
    }

    fn read<'m, V: View<'m>>(part: V) -> Option<PartRef<'m>> {
        let url = match part.text("type") {
            "image_url" => {
                let image = part.get("image_url")?;
                if image.is_object() {
                    image.get("url")?
                } else {
                    image
                }
            }
            // A file with a name is more than its bytes, so it stays opaque.
            "file" => {
                let file = part.get("file").filter(|file| file.fields().count() == 1)?;
                file.get("file_data")?
            }
            "input_audio" => {
                let [data, format] = part.get("input_audio")?.pick(["data", "format"]);
                let mime = match format.and_then(V::as_str) {
                    Some("mp3") => "audio/mpeg",
                    _ => "audio/wav",
                };
                let data = Data::Base64(data?.as_str()?);
                return Some(PartRef::Media { mime, data });
            }
            _ => return None,
        };
        read_url(url.as_str()?)
    }

    fn media(mime: &str, base64: String) -> Value {
        let audio = |format, data| json!({"type": "input_audio", "input_audio": {"format": format, "data": data}});
        match mime {
            "audio/mpeg" => audio("mp3", base64),
            "audio/wav" => audio("wav", base64),
            _ if mime.starts_with("image/") => Self::link(Some(mime), data_url(mime, &base64)),
            _ => json!({"type": "file", "file": {"file_data": data_url(mime, &base64)}}),
        }
    }

    fn link(_: Option<&str>, url: String) -> Value {
        json!({"type": "image_url", "image_url": {"url": url}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::format::tests::{expect_untouched, seen};

    #[test]
    fn every_kind_of_message_shows_its_pieces() {
        insta::assert_snapshot!(seen(&OpenAiChat, &json!({"role": "assistant", "content": "Looking.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{}"}},
            {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
        ]})), @r#"
        Role(Assistant)
        Call(Call { id: "a", name: "grep", arguments: Text("{}"), is_signed: false, is_for_program: false, is_fixed: false })
        Call(Call { id: "b", name: "patch", arguments: Text("*** Begin"), is_signed: false, is_for_program: false, is_fixed: false })
        Content(Text("Looking."))
        "#);
        insta::assert_snapshot!(seen(&OpenAiChat, &json!({"role": "tool", "tool_call_id": "a", "content": [
            {"type": "text", "text": "one"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
            {"type": "new", "x": 1},
        ]})), @r#"
        Role(Tool)
        Result(ResultHead { id: "a", name: None, is_error: false, is_for_program: false, is_fixed: false })
        Content(Text("one"))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Content(Link { mime: None, url: "https://example.org/x.png" })
        Content(Opaque(Object {"type": String("new"), "x": Number(1)}))
        "#);
        insta::assert_snapshot!(seen(&OpenAiChat, &json!({"role": "function", "name": "f", "content": "r"})), @r#"
        Role(Tool)
        Result(ResultHead { id: "", name: Some("f"), is_error: false, is_for_program: false, is_fixed: false })
        Content(Text("r"))
        "#);
    }

    #[test]
    fn malformed_messages_are_left_untouched() {
        expect_untouched(
            &OpenAiChat,
            1,
            &[
                json!(null),
                json!([]),
                json!({}),
                json!({"role": 1}),
                json!({"role": "tool", "content": {"a": 1}}),
            ],
        );
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
