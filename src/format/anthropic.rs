//! Anthropic's messages as wire JSON.

use crate::json::View;
use serde_json::{Value, json};

use super::blocks::{Blocks, data_url, is_cache_mark, is_for_program, is_signed, loads_tools};
use super::site::{See, Site, show_role};
use super::{Call, Data, JsonRef, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// Returns true if the provider takes a part beside others.
pub(super) fn takes_part(part: &Part) -> bool {
    match part {
        Part::Media { mime, .. } => source(mime).is_some(),
        Part::Text(text) => !text.trim().is_empty(),
        _ => true,
    }
}

/// The media type of a source, as the provider spells it; `None` if it takes none of this type.
fn source(mime: &str) -> Option<&'static str> {
    let mime = mime.split(';').next().unwrap_or_default().trim();
    let mime = match mime.to_ascii_lowercase().as_str() {
        PDF => PDF,
        "image/gif" => "image/gif",
        "image/jpeg" | "image/jpg" => "image/jpeg",
        "image/png" => "image/png",
        "image/webp" => "image/webp",
        _ => return None,
    };
    Some(mime)
}

/// The block that answers `call` with `content`.
pub(super) fn block(call: &ToolCall, content: Vec<Part>, is_error: bool) -> Value {
    let content = AnthropicParts::content(content);
    let mut block = json!({"type": "tool_result", "tool_use_id": call.id, "content": content});
    if is_error {
        block["is_error"] = Value::Bool(true);
    }
    block
}

/// Calls `see` with each piece of a message, in order, and with the site of what can be replaced.
pub(super) fn see<'m, V: View<'m>>(message: V, see: See<'_, 'm, V>) {
    let [role, content] = message.pick(["role", "content"]);
    let role = match role.and_then(V::as_str) {
        Some("assistant") => Role::Assistant,
        Some("user") => Role::User,
        _ => Role::System,
    };
    let Some(blocks) = content.filter(|content| content.is_array()) else {
        see(Piece::Role(role), None);
        return AnthropicParts::show(message, "content", see);
    };
    let mut last = None;
    for (at, block) in blocks.items().enumerate() {
        let item = ("content", at);
        let site = |field| Site {
            item: Some(item),
            ..Site::of(block, field)
        };
        let kind = block.text("type");
        let is_result = kind == "tool_result";
        show_role(if is_result { Role::Tool } else { role }, &mut last, see);
        match kind {
            "tool_result" => {
                let [is_error, content] = block.pick(["is_error", "content"]);
                let is_error = is_error.and_then(V::as_bool);
                let head = ResultHead {
                    is_error: is_error.unwrap_or_default(),
                    is_fixed: loads_tools(content),
                    id: block.text("tool_use_id"),
                    ..ResultHead::default()
                };
                see(Piece::Result(head), Some(site("content")));
                AnthropicParts::show_slot(block, "content", see);
            }
            // The provider's own signatures cover the thinking, not the call.
            "tool_use" => {
                let input = block.get("input");
                let arguments = input.map_or(JsonRef::Spelled(""), V::json);
                let call = Call {
                    is_signed: is_signed(block),
                    is_for_program: is_for_program(block),
                    ..Call::new(block.text("id"), block.text("name"), arguments)
                };
                see(Piece::Call(call), Some(site("input")));
            }
            _ => AnthropicParts::show_part(block, item, see),
        }
    }
    if last.is_none() {
        show_role(role, &mut last, see);
    }
}

/// The blocks of Anthropic's messages.
pub(super) struct AnthropicParts;

impl Blocks for AnthropicParts {
    const TEXTS: &'static [(&'static str, &'static str)] =
        &[("text", "text"), ("thinking", "thinking")];

    fn read<'m, V: View<'m>>(block: V) -> Option<PartRef<'m>> {
        // A document with a title or citations is more than its bytes, so it stays opaque.
        let is_bare = |name: &str| matches!(name, "type" | "source") || is_cache_mark(name);
        match block.text("type") {
            "image" => {}
            "document" if block.fields().all(|(name, _)| is_bare(name)) => {}
            _ => return None,
        }
        let fields = block.get("source")?;
        let fields = fields.pick(["type", "media_type", "data", "url"]);
        match fields.map(|field| field.and_then(V::as_str)) {
            [Some("base64"), Some(mime), Some(data), _] => Some(PartRef::Media {
                mime,
                data: Data::Base64(data),
            }),
            [Some("url"), _, _, Some(url)] => Some(PartRef::Link { mime: None, url }),
            _ => None,
        }
    }

    fn media(mime: &str, base64: String) -> Value {
        match source(mime) {
            Some(mime) => {
                json!({"type": block_for(Some(mime)), "source": {"type": "base64", "media_type": mime, "data": base64}})
            }
            None => Self::text(data_url(mime, &base64)),
        }
    }

    fn link(mime: Option<&str>, url: String) -> Value {
        json!({"type": block_for(mime), "source": {"type": "url", "url": url}})
    }
}

const PDF: &str = "application/pdf";

/// The type of a block that has a source.
fn block_for(mime: Option<&str>) -> &'static str {
    if mime == Some(PDF) {
        "document"
    } else {
        "image"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{expect_untouched, seen};
    use crate::format::{Anthropic, Format, NewPiece};

    #[test]
    fn several_results_of_a_message_are_slots_and_the_rest_is_the_users() {
        insta::assert_snapshot!(seen(&Anthropic, &json!({"role": "user", "content": [
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
        Result(ResultHead { id: "a", name: None, is_error: false, is_for_program: false, is_fixed: false })
        Content(Text("one"))
        Result(ResultHead { id: "b", name: None, is_error: true, is_for_program: false, is_fixed: false })
        Content(Text("two"))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Content(Link { mime: None, url: "https://example.org/x.png" })
        Content(Opaque(Object {"type": String("document"), "title": String("x"), "source": Object {"type": String("text"), "media_type": String("text/plain"), "data": String("t")}}))
        Result(ResultHead { id: "c", name: None, is_error: false, is_for_program: false, is_fixed: false })
        Role(User)
        Content(Text("Go on."))
        "#);
    }

    #[test]
    fn an_assistant_message_thinks_says_and_calls() {
        insta::assert_snapshot!(seen(&Anthropic, &json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "a", "name": "grep", "input": {"pattern": "x"}},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        ]})), @r#"
        Role(Assistant)
        Content(Text("hm"))
        Content(Text("Looking."))
        Call(Call { id: "a", name: "grep", arguments: Object {"pattern": String("x")}, is_signed: false, is_for_program: false, is_fixed: false })
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
        Anthropic.replace(&mut changed, 0, NewPiece::Result(vec!["hint".into()]));
        Anthropic.replace(&mut changed, 1, NewPiece::Result(vec!["other".into()]));
        assert_eq!(
            changed,
            message(
                "hint",
                json!([{"type": "text", "text": "other", "cache_control": mark}])
            )
        );
    }

    #[test]
    fn l5_a_cache_mark_stays_a_cache_mark() {
        let mark = json!({"type": "ephemeral"});
        let image = json!({"type": "image", "source": {"type": "file", "file_id": "f"}, "cache_control": mark});
        let text = |text: &str| json!({"type": "text", "text": text});
        let message = |content: Vec<Value>| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": content}]});
        let mut changed = message(vec![image.clone(), text("long")]);
        Anthropic.replace(
            &mut changed,
            0,
            NewPiece::Result(vec![Part::Opaque(image.clone()), "hint".into()]),
        );
        assert_eq!(
            changed,
            message(vec![image, text("hint")]),
            "once, where it is"
        );
        Anthropic.replace(
            &mut changed,
            0,
            NewPiece::Result(vec!["hint".into(), "other".into()]),
        );
        let marked = json!({"type": "text", "text": "other", "cache_control": mark});
        assert_eq!(
            changed,
            message(vec![text("hint"), marked]),
            "on the last part, where its part is gone"
        );
    }

    #[test]
    fn arguments_become_an_object() {
        let mut message = json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "f", "input": {"long": 1}, "caller": {"type": "direct"}},
        ]});
        Anthropic.replace(
            &mut message,
            0,
            NewPiece::Arguments(r#"{"_cleared":"hint"}"#.into()),
        );
        Anthropic.replace(&mut message, 1, NewPiece::Arguments("{}".into()));
        assert_eq!(
            message,
            json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "f", "input": {"_cleared": "hint"}, "caller": {"type": "direct"}},
            ]})
        );
    }

    #[test]
    fn malformed_messages_are_left_untouched() {
        let odd = [
            json!(null),
            json!([]),
            json!({"role": "user", "content": []}),
            json!({"role": "user", "content": [null, 1, "text", {"type": 7}, {"type": "image", "source": 1}]}),
            json!({"role": "user", "content": {"type": "tool_result"}}),
        ];
        expect_untouched(&Anthropic, 0, &odd);
    }
}
