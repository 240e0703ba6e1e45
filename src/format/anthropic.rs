//! Anthropic's messages as their wire JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::blocks::{Blocks, is_cache_mark, text_of};
use super::{Arguments, Call, Data, Format, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The format of the messages of Anthropic's Messages API, as [`serde_json::Value`].
///
/// One user message may hold several results: each `tool_result` block is a slot. Error flags, cache marks, signatures and unknown
/// fields stay as they are. What the provider's own tools return (`server_tool_use` and the results that follow it in the
/// assistant message) is counted and never changed. Order of keys: see the crate's documentation on `preserve_order`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anthropic;

impl Anthropic {
    /// The `tool_result` block that answers `call` with `content`.
    ///
    /// ```
    /// use offcut::{ToolCall, format::Anthropic};
    /// use serde_json::json;
    /// let call = ToolCall::new("toolu_1", "grep", "{}");
    /// let result = Anthropic::tool_result(&call, vec!["3 hits".into()], false);
    /// assert_eq!(result, json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "3 hits"}));
    /// let message = Anthropic::tool_message([result]);
    /// assert_eq!(message["role"], "user");
    /// ```
    #[must_use]
    pub fn tool_result(call: &ToolCall, content: impl Into<Vec<Part>>, is_error: bool) -> Value {
        let mut block =
            json!({"type": "tool_result", "tool_use_id": call.id, "content": BLOCKS.content(content.into())});
        if is_error {
            block["is_error"] = Value::Bool(true);
        }
        block
    }

    /// The user message with the results of all calls of an assistant message, which the API wants together.
    #[must_use]
    pub fn tool_message(results: impl IntoIterator<Item = Value>) -> Value {
        json!({"role": "user", "content": results.into_iter().collect::<Value>()})
    }

    /// The calls of an assistant message.
    #[must_use]
    pub fn tool_calls(message: &Value) -> Vec<ToolCall> {
        super::tool_calls(&Self, message)
    }
}

impl Format for Anthropic {
    type Message = Value;

    fn visit<'m>(&self, message: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
        let role = match text_of(message, "role") {
            "assistant" => Role::Assistant,
            "user" => Role::User,
            _ => Role::System,
        };
        let content = message.get("content");
        let Some(Value::Array(blocks)) = content else {
            see(Piece::Role(role));
            return BLOCKS.visit(content, see);
        };
        let mut open = None;
        for block in blocks {
            let kind = text_of(block, "type");
            let whose = if kind == "tool_result" { Role::Tool } else { role };
            if open != Some(whose) {
                see(Piece::Role(whose));
                open = Some(whose);
            }
            match kind {
                "tool_result" => {
                    let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or_default();
                    see(Piece::Result(ResultHead { id: text_of(block, "tool_use_id"), name: None, is_error }));
                    BLOCKS.visit_slot(block.get("content"), see);
                }
                "tool_use" => see(Piece::Call(Call {
                    id: text_of(block, "id"),
                    name: text_of(block, "name"),
                    arguments: block.get("input").map_or(Arguments::Text(""), Arguments::Json),
                    is_signed: false, // what is signed is the thinking
                })),
                _ => see(Piece::Content(BLOCKS.part(block))),
            }
        }
        if open.is_none() {
            see(Piece::Role(role));
        }
    }

    fn replace_result(&self, message: &mut Value, slot: usize, parts: Vec<Part>) {
        if let Some(Value::Object(block)) = nth_block(message, "tool_result", slot) {
            BLOCKS.replace(block, "content", parts);
        }
    }

    fn replace_arguments(&self, message: &mut Value, call: usize, arguments: String) {
        if let (Some(Value::Object(block)), Ok(input)) =
            (nth_block(message, "tool_use", call), serde_json::from_str::<Value>(&arguments))
        {
            block.insert("input".into(), input);
        }
    }
}

fn nth_block<'m>(message: &'m mut Value, kind: &str, nth: usize) -> Option<&'m mut Value> {
    let blocks = message.get_mut("content")?.as_array_mut()?;
    blocks.iter_mut().filter(|block| text_of(block, "type") == kind).nth(nth)
}

const BLOCKS: Blocks = Blocks { is_text: |kind| kind == "text", read: read_block, write: write_block };

fn read_block(block: &Value) -> PartRef<'_> {
    match text_of(block, "type") {
        "thinking" => block.get("thinking").and_then(Value::as_str).map_or(PartRef::Opaque(block), PartRef::Text),
        "image" => read_source(block),
        // A document with a title or citations is more than its bytes.
        "document" => {
            let is_bare = |name: &String| matches!(name.as_str(), "type" | "source") || is_cache_mark(name);
            let is_bare = block.as_object().is_some_and(|fields| fields.keys().all(is_bare));
            if is_bare { read_source(block) } else { PartRef::Opaque(block) }
        }
        _ => PartRef::Opaque(block),
    }
}

fn read_source(block: &Value) -> PartRef<'_> {
    let Some(source) = block.get("source") else { return PartRef::Opaque(block) };
    let [mime, data, url] = ["media_type", "data", "url"].map(|field| source.get(field).and_then(Value::as_str));
    match (text_of(source, "type"), mime, data, url) {
        ("base64", Some(mime), Some(data), _) => PartRef::Media { mime, data: Data::Base64(data) },
        ("url", _, _, Some(url)) => PartRef::Link { mime: None, url },
        _ => PartRef::Opaque(block),
    }
}

fn write_block(part: Part) -> Value {
    let text = |text: String| json!({"type": "text", "text": text});
    match part {
        Part::Text(said) => text(said),
        Part::Json(value) => text(value.to_string()),
        Part::Media { mime, data } => {
            let kind = match mime.as_str() {
                "application/pdf" => "document",
                mime if mime.starts_with("image/") => "image",
                // There is no block for any other bytes.
                _ => return text(format!("data:{mime};base64,{}", STANDARD.encode(&data))),
            };
            json!({"type": kind, "source": {"type": "base64", "media_type": mime, "data": STANDARD.encode(&data)}})
        }
        Part::Link { mime, url } => {
            let kind = if mime.as_deref() == Some("application/pdf") { "document" } else { "image" };
            json!({"type": kind, "source": {"type": "url", "url": url}})
        }
        Part::Opaque(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(message: &Value) -> String {
        let mut out = String::new();
        Anthropic.visit(message, &mut |piece| out.push_str(&format!("{piece:?}\n")));
        out
    }

    #[test]
    fn several_results_in_one_message_are_slots_and_what_follows_is_the_users() {
        insta::assert_snapshot!(seen(&json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "one", "cache_control": {"type": "ephemeral"}},
            {"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": [
                {"type": "text", "text": "two"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}},
                {"type": "document", "title": "x", "source": {"type": "text", "media_type": "text/plain", "data": "t"}},
            ]},
            {"type": "tool_result", "tool_use_id": "c"},
            {"type": "text", "text": "Go on."},
        ]})), @r#"
        Role(Tool)
        Result(ResultHead { id: "a", name: None, is_error: false })
        Content(Text("one"))
        Result(ResultHead { id: "b", name: None, is_error: true })
        Content(Text("two"))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Content(Link { mime: None, url: "https://example.org/x.png" })
        Content(Opaque(Object {"type": String("document"), "title": String("x"), "source": Object {"type": String("text"), "media_type": String("text/plain"), "data": String("t")}}))
        Result(ResultHead { id: "c", name: None, is_error: false })
        Role(User)
        Content(Text("Go on."))
        "#);
    }

    #[test]
    fn an_assistant_message_thinks_says_and_calls() {
        insta::assert_snapshot!(seen(&json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "a", "name": "grep", "input": {"pattern": "x"}},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        ]})), @r#"
        Role(Assistant)
        Content(Text("hm"))
        Content(Text("Looking."))
        Call(Call { id: "a", name: "grep", arguments: Json(Object {"pattern": String("x")}), is_signed: false })
        Content(Opaque(Object {"type": String("server_tool_use"), "id": String("s"), "name": String("web_search"), "input": Object {}}))
        "#);
    }

    #[test]
    fn l5_error_flags_cache_marks_and_unknown_fields_stay() {
        let message = |first: &str, second: Value| {
            json!({"role": "user", "x": 1, "content": [
                {"type": "text", "text": "before"},
                {"type": "tool_result", "tool_use_id": "a", "is_error": true, "cache_control": {"type": "ephemeral"}, "content": first},
                {"type": "tool_result", "tool_use_id": "b", "y": null, "content": second},
            ]})
        };
        let mark = json!({"type": "ephemeral", "ttl": "1h"});
        let mut changed = message(
            "long",
            json!([{"type": "text", "text": "long", "cache_control": mark}, {"type": "text", "text": "longer"}]),
        );
        Anthropic.replace_result(&mut changed, 0, vec!["hint".into()]);
        Anthropic.replace_result(&mut changed, 1, vec!["other".into()]);
        assert_eq!(changed, message("hint", json!([{"type": "text", "text": "other", "cache_control": mark}])));
    }

    #[test]
    fn l5_a_cache_mark_stays_one() {
        let mark = json!({"type": "ephemeral"});
        let image = json!({"type": "image", "source": {"type": "file", "file_id": "f"}, "cache_control": mark});
        let text = |text: &str| json!({"type": "text", "text": text});
        let message = |content: Vec<Value>| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": content}]});
        let mut changed = message(vec![image.clone(), text("long")]);
        Anthropic.replace_result(&mut changed, 0, vec![Part::Opaque(image.clone()), "hint".into()]);
        assert_eq!(changed, message(vec![image, text("hint")]), "once, where it is");
        Anthropic.replace_result(&mut changed, 0, vec!["hint".into(), "other".into()]);
        let marked = json!({"type": "text", "text": "other", "cache_control": mark});
        assert_eq!(changed, message(vec![text("hint"), marked]), "on the last part, where its part is gone");
    }

    #[test]
    fn arguments_become_an_object() {
        let mut message = json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "f", "input": {"long": 1}, "caller": {"type": "direct"}},
        ]});
        Anthropic.replace_arguments(&mut message, 0, r#"{"_cleared":"hint"}"#.into());
        Anthropic.replace_arguments(&mut message, 1, "{}".into());
        assert_eq!(
            message,
            json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "f", "input": {"_cleared": "hint"}, "caller": {"type": "direct"}},
            ]})
        );
    }

    #[test]
    fn malformed_messages_are_seen_as_what_they_are() {
        let odd = [
            json!(null),
            json!([]),
            json!({"role": "user", "content": []}),
            json!({"role": "user", "content": [null, 1, "text", {"type": 7}, {"type": "image", "source": 1}]}),
            json!({"role": "user", "content": {"type": "tool_result"}}),
        ];
        for odd in odd {
            assert!(seen(&odd).starts_with("Role("), "{odd}");
            let mut changed = odd.clone();
            Anthropic.replace_result(&mut changed, 0, vec![]);
            Anthropic.replace_arguments(&mut changed, 0, "{}".into());
            assert_eq!(changed, odd);
        }
    }
}
