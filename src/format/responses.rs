//! Items of OpenAI's Responses API as wire JSON.

use crate::json::View;
use serde_json::{Value, json};

use super::blocks::{
    Blocks, arguments, data_url, is_for_program, is_given, is_signed, loads_tools, read_url,
};
use super::site::{See, Site};
use super::{Call, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The item that answers `call`, a function call, with `content`: one text is a string; anything
/// else is a list of parts.
pub(super) fn item(call: &ToolCall, content: Vec<Part>) -> Value {
    let output = ResponsesParts::content(content);
    json!({"type": "function_call_output", "call_id": call.id, "output": output})
}

/// Calls `see` with each piece of a message, in order, and with the site of what can be replaced.
pub(super) fn see<'m, V: View<'m>>(item: V, see: See<'_, 'm, V>) {
    match kind_of(item) {
        "message" => {
            let role = match item.text("role") {
                "assistant" => Role::Assistant,
                "user" => Role::User,
                _ => Role::System,
            };
            see(Piece::Role(role), None);
            ResponsesParts::show(item, "content", see);
        }
        kind @ ("function_call" | "custom_tool_call" | LOCAL_SHELL) => {
            see(Piece::Role(Role::Assistant), None);
            let site = Site::of(item, arguments_of(kind));
            let is_fixed = kind == LOCAL_SHELL;
            let name = if is_fixed {
                "local_shell"
            } else {
                item.text("name")
            };
            let call = Call {
                is_fixed,
                is_signed: is_signed(item),
                is_for_program: is_for_program(item),
                ..Call::new(item.text("call_id"), name, arguments(site.get()))
            };
            see(Piece::Call(call), Some(site));
        }
        "function_call_output" | "custom_tool_call_output" => {
            see(Piece::Role(Role::Tool), None);
            let site = Site::of(item, "output");
            let head = ResultHead {
                is_for_program: is_for_program(item),
                is_fixed: loads_tools(site.get()),
                id: item.text("call_id"),
                ..ResultHead::default()
            };
            see(Piece::Result(head), Some(site));
            ResponsesParts::show_slot(item, "output", see);
        }
        "reasoning" => {
            see(Piece::Role(Role::Assistant), None);
            ResponsesParts::show(item, "summary", see);
            ResponsesParts::show(item, "content", see);
        }
        kind => {
            let role = if kind.ends_with("_call_output") || kind == "mcp_approval_response" {
                // Not slots, but as the user's they end the model's turn.
                Role::User
            } else if kind.ends_with("_call")
                || kind.starts_with("mcp_")
                || matches!(kind, "compaction" | "compaction_summary" | "item_reference")
            {
                // Calls of the provider's tools, and other items of the model.
                Role::Assistant
            } else {
                Role::System
            };
            see(Piece::Role(role), None);
            see(Piece::Content(PartRef::Opaque(item.json())), None);
        }
    }
}

/// A call whose arguments have a prescribed shape. Some clients answer it as a function's.
const LOCAL_SHELL: &str = "local_shell_call";

/// An item's type, which a message may omit.
fn kind_of<'m, V: View<'m>>(item: V) -> &'m str {
    match item.get("type") {
        Some(kind) => kind.as_str().unwrap_or_default(),
        None if item.has("role") => "message",
        None if item.has("id") && item.fields().count() == 1 => "item_reference",
        None => "",
    }
}

fn arguments_of(kind: &str) -> &'static str {
    match kind {
        "function_call" => "arguments",
        LOCAL_SHELL => "action",
        _ => "input",
    }
}

/// The parts of items of the Responses API.
pub(super) struct ResponsesParts;

impl Blocks for ResponsesParts {
    const TEXTS: &'static [(&'static str, &'static str)] = &[
        ("input_text", "text"),
        ("output_text", "text"),
        ("summary_text", "text"),
        ("reasoning_text", "text"),
        ("text", "text"),
        ("refusal", "refusal"),
    ];

    fn read<'m, V: View<'m>>(part: V) -> Option<PartRef<'m>> {
        // With a name or an id, it is more than its bytes, so it stays opaque.
        if part.pick(["filename", "file_id"]).into_iter().any(is_given) {
            return None;
        }
        let url = match part.text("type") {
            "input_image" => part.get("image_url"),
            "input_file" => part.get("file_data").or_else(|| part.get("file_url")),
            _ => None,
        };
        read_url(url?.as_str()?)
    }

    fn media(mime: &str, base64: String) -> Value {
        let url = data_url(mime, &base64);
        if mime.starts_with("image/") {
            json!({"type": "input_image", "image_url": url})
        } else {
            json!({"type": "input_file", "file_data": url})
        }
    }

    fn link(mime: Option<&str>, url: String) -> Value {
        if mime.is_none_or(|mime| mime.starts_with("image/")) {
            json!({"type": "input_image", "image_url": url})
        } else {
            json!({"type": "input_file", "file_url": url})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{expect_untouched, seen};
    use crate::format::{Format, NewPiece, Responses};

    #[test]
    fn every_kind_of_item_shows_its_pieces() {
        let items = [
            json!({"role": "user", "content": "go"}),
            json!({"type": "message", "role": "assistant", "id": "msg_1", "content": [
                {"type": "output_text", "text": "Looking.", "annotations": []}, {"type": "refusal", "refusal": "no"},
            ]}),
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e30="}),
            json!({"type": "function_call", "call_id": "a", "name": "grep", "arguments": "{}", "id": "fc_1", "status": "completed"}),
            json!({"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin"}),
            json!({"type": "function_call_output", "call_id": "a", "output": [
                {"type": "input_text", "text": "one"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
                {"type": "input_file", "file_id": "file_1"},
            ]}),
            json!({"type": "custom_tool_call_output", "call_id": "b", "output": "done"}),
            json!({"type": "web_search_call", "id": "ws_1"}),
            json!({"type": "computer_call_output", "call_id": "c"}),
            json!({"type": "new"}),
        ];
        let all: Vec<String> = items
            .iter()
            .map(|message| seen(&Responses, message))
            .collect();
        insta::assert_snapshot!(all.join("--\n"), @r#"
        Role(User)
        Content(Text("go"))
        --
        Role(Assistant)
        Content(Text("Looking."))
        Content(Text("no"))
        --
        Role(Assistant)
        Content(Text("hm"))
        --
        Role(Assistant)
        Call(Call { id: "a", name: "grep", arguments: Spelled("{}"), is_signed: false, is_for_program: false, is_fixed: false })
        --
        Role(Assistant)
        Call(Call { id: "b", name: "patch", arguments: Spelled("*** Begin"), is_signed: false, is_for_program: false, is_fixed: false })
        --
        Role(Tool)
        Result(ResultHead { id: "a", name: None, is_error: false, is_for_program: false, is_fixed: false })
        Content(Text("one"))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Content(Opaque(Object {"type": String("input_file"), "file_id": String("file_1")}))
        --
        Role(Tool)
        Result(ResultHead { id: "b", name: None, is_error: false, is_for_program: false, is_fixed: false })
        Content(Text("done"))
        --
        Role(Assistant)
        Content(Opaque(Object {"type": String("web_search_call"), "id": String("ws_1")}))
        --
        Role(User)
        Content(Opaque(Object {"type": String("computer_call_output"), "call_id": String("c")}))
        --
        Role(System)
        Content(Opaque(Object {"type": String("new")}))
        "#);
    }

    #[test]
    fn l5_unknown_fields_stay() {
        let output = |text: &str| {
            json!({"type": "function_call_output", "call_id": "a", "id": "fco_1", "status": "completed", "output": [
                {"type": "input_text", "text": text, "x": 1, "prompt_cache_breakpoint": {"mode": "explicit"}},
            ]})
        };
        let mut changed = output("long");
        Responses.replace(&mut changed, 0, NewPiece::Result(vec!["hint".into()]));
        assert_eq!(changed, output("hint"));

        let call = |arguments: &str| json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments, "id": "fc_1", "x": []});
        let mut changed = call("{\"long\":1}");
        Responses.replace(&mut changed, 0, NewPiece::Arguments("{}".into()));
        assert_eq!(changed, call("{}"));
        let mut custom =
            json!({"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "long"});
        Responses.replace(&mut custom, 0, NewPiece::Arguments("{}".into()));
        assert_eq!(custom["input"], "{}");
    }

    #[test]
    fn malformed_items_are_left_untouched() {
        expect_untouched(
            &Responses,
            0,
            &[
                json!(null),
                json!([]),
                json!({}),
                json!({"type": 1}),
                json!({"type": "message", "content": [null, 7]}),
            ],
        );
    }
}
