//! Chat-completions messages as wire JSON.

use crate::json::View;
use serde_json::{Value, json};

use super::blocks::{
    Blocks, arguments, data_url, has_signature, is_for_program, is_signed, loads_tools, read_url,
};
use super::site::{See, Site};
use super::{Call, Data, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The message that answers `call` with `content`: one text is a string, which every provider
/// accepts; anything else is a list of parts.
pub(super) fn message(call: &ToolCall, content: Vec<Part>) -> Value {
    json!({"role": "tool", "tool_call_id": call.id, "content": ChatParts::content(content)})
}

/// Calls `see` with each piece of a message, in order, and with the site of what can be replaced.
pub(super) fn see<'m, V: View<'m>>(message: V, see: See<'_, 'm, V>) {
    // Several fields in one go, since this runs for every message.
    let [role, content, id, name] = message.pick(["role", "content", "tool_call_id", "name"]);
    let text = |field: Option<V>| field.and_then(V::as_str);
    let [role, id, name] = [role, id, name].map(text);
    match role {
        Some("assistant") => {
            see(Piece::Role(Role::Assistant), None);
            show_compactions(message, see);
            show_calls(message, see);
            show_thoughts(message, see);
            ChatParts::show(message, "content", see);
            show_images(message, see);
        }
        Some("tool" | "function") => {
            see(Piece::Role(Role::Tool), None);
            let head = ResultHead {
                name,
                is_fixed: loads_tools(content),
                id: id.unwrap_or_default(),
                ..ResultHead::default()
            };
            see(Piece::Result(head), Some(Site::of(message, "content")));
            ChatParts::show_slot(message, "content", see);
        }
        role => {
            let is_user = role == Some("user");
            let role = if is_user { Role::User } else { Role::System };
            see(Piece::Role(role), None);
            ChatParts::show(message, "content", see);
            show_images(message, see);
        }
    }
}

/// Shows Anthropic's compactions, which LiteLLM sends back before all else of the message.
fn show_compactions<'m, V: View<'m>>(message: V, see: See<'_, 'm, V>) {
    let fields = message.get("provider_specific_fields");
    let compactions = fields.and_then(|fields| fields.get("compaction_blocks"));
    for block in compactions.into_iter().flat_map(V::items) {
        see(Piece::Content(PartRef::Opaque(block.json())), None);
    }
}

/// Shows the calls of a message, or its deprecated `function_call` if it has no others.
fn show_calls<'m, V: View<'m>>(message: V, see: See<'_, 'm, V>) {
    let [listed, legacy, details] =
        message.pick(["tool_calls", "function_call", "reasoning_details"]);
    let is_detail_signature =
        |details: V| is_signature(details) || details.items().any(is_signature);
    let are_signed = has_signature(message) || details.is_some_and(is_detail_signature);
    let mut show = |raw: V, site: Site<V>| {
        let object = site.object;
        let call = Call {
            is_signed: are_signed || is_signed(raw) || is_signed(object),
            is_for_program: is_for_program(raw) || is_for_program(object),
            ..Call::new(raw.text("id"), object.text("name"), arguments(site.get()))
        };
        see(Piece::Call(call), Some(site));
    };
    let mut listed = listed.into_iter().flat_map(V::items).enumerate().peekable();
    if let (None, Some(call)) = (listed.peek(), legacy.filter(|call| call.is_object())) {
        let key = Some("function_call");
        show(
            call,
            Site {
                key,
                ..Site::of(call, "arguments")
            },
        );
    }
    for (at, call) in listed {
        let (object, key, field) = holder(call);
        let item = Some(("tool_calls", at));
        show(
            call,
            Site {
                item,
                key,
                ..Site::of(object, field)
            },
        );
    }
}

/// Fields with a model's thoughts as text.
const REASONING: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "thinking",
    "reasoning_text",
];

/// Shows a model's thoughts, and its refusal. Gateways repeat the same thoughts in several fields, whole or in
/// pieces, so the field with most of them counts.
fn show_thoughts<'m, V: View<'m>>(message: V, see: See<'_, 'm, V>) {
    let text = |field: Option<V>| field.and_then(V::as_str);
    let [details, blocks, refusal] =
        message.pick(["reasoning_details", "thinking_blocks", "refusal"]);
    let whole = message
        .pick(REASONING)
        .map(|field| Vec::from_iter(text(field)));
    let pieces =
        [(details, &["text", "summary"][..]), (blocks, &["thinking"])].map(|(list, names)| {
            let items = list.into_iter().flat_map(V::items);
            items
                .filter_map(|item| names.iter().find_map(|name| text(item.get(name))))
                .collect()
        });
    let length = |texts: &Vec<&str>| texts.iter().map(|text| text.len()).sum::<usize>();
    let thoughts = whole.into_iter().chain(pieces).max_by_key(length);
    for text in thoughts.into_iter().flatten().chain(text(refusal)) {
        see(Piece::Content(PartRef::Text(text)), None);
    }
}

/// The object that has a call's name and arguments, its key in the call, and the key of the
/// arguments in it: a function's `arguments` are JSON as text, a custom tool's `input` is free text.
fn holder<'m, V: View<'m>>(call: V) -> (V, Option<&'static str>, &'static str) {
    // The last one is how async-openai writes the second.
    match call.pick(["function", "custom", "custom_tool"]) {
        [Some(function), ..] => (function, Some("function"), "arguments"),
        [None, Some(custom), _] => (custom, Some("custom"), "input"),
        [None, None, Some(custom)] => (custom, Some("custom_tool"), "input"),
        [None, None, None] => (call, None, "arguments"),
    }
}

/// Returns true if a detail of the model's reasoning signs the calls of its message: it is encrypted,
/// or Gemini's.
fn is_signature<'m, V: View<'m>>(detail: V) -> bool {
    detail.text("type") == "reasoning.encrypted" || detail.text("format").starts_with("google")
}

/// Shows the images beside a message's content: base64 in Ollama's API, parts in OpenRouter's.
fn show_images<'m, V: View<'m>>(message: V, see: See<'_, 'm, V>) {
    for image in message.get("images").into_iter().flat_map(V::items) {
        let part = match image.as_str() {
            Some(data) => PartRef::Media {
                mime: "image/*",
                data: Data::Base64(data),
            },
            None => ChatParts::part(image),
        };
        see(Piece::Content(part), None);
    }
}

/// The parts of chat completions.
pub(super) struct ChatParts;

impl Blocks for ChatParts {
    const TEXTS: &'static [(&'static str, &'static str)] =
        &[("text", "text"), ("refusal", "refusal")];

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
    use crate::format::tests::{expect_untouched, seen};
    use crate::format::{Format, NewPiece, OpenAiChat};

    #[test]
    fn every_kind_of_message_shows_its_pieces() {
        insta::assert_snapshot!(seen(&OpenAiChat, &json!({"role": "assistant", "content": "Looking.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "grep", "arguments": "{}"}},
            {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
        ]})), @r#"
        Role(Assistant)
        Call(Call { id: "a", name: "grep", arguments: Spelled("{}"), is_signed: false, is_for_program: false, is_fixed: false })
        Call(Call { id: "b", name: "patch", arguments: Spelled("*** Begin"), is_signed: false, is_for_program: false, is_fixed: false })
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
        OpenAiChat.replace(&mut message, 0, NewPiece::Result(vec!["hint".into()]));
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
        OpenAiChat.replace(&mut message, 0, NewPiece::Arguments("{}".into()));
        assert_eq!(
            message,
            json!({"role": "assistant", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "x": 1},
            ]})
        );
        let mut legacy =
            json!({"role": "assistant", "function_call": {"name": "f", "arguments": "1"}});
        OpenAiChat.replace(&mut legacy, 0, NewPiece::Arguments("{}".into()));
        assert_eq!(legacy["function_call"]["arguments"], "{}");
    }
}
