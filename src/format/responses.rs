//! Items of OpenAI's Responses API as their wire JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::blocks::{Blocks, read_url};
use super::json::{Edit, New, View};
use super::wire_json::WireJson;
use super::{Arguments, Call, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The format of the items that OpenAI's Responses API takes as `input`, as [`serde_json::Value`].
///
/// The outputs of function calls and of custom tool calls are slots. What hosted tools were asked
/// and returned (web and file search, code interpreter, MCP), and the outputs that must have a
/// shape of their own (computer, shell, patches), are counted and never changed; an item of a kind
/// that is not known is neither. The API has no error mark for outputs, so none is seen and none is
/// written. Order of keys: see the crate's documentation on `preserve_order`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Responses;

impl Responses {
    /// The item that answers `call`, a call of a function, with `content`.
    ///
    /// One text becomes a string; anything else becomes an array of parts.
    #[must_use]
    pub fn tool_output(call: &ToolCall, content: impl Into<Vec<Part>>) -> Value {
        json!({"type": "function_call_output", "call_id": call.id, "output": Self::content(content.into())})
    }

    /// The call that an item is: one or none.
    #[must_use]
    pub fn tool_calls(item: &Value) -> Vec<ToolCall> {
        super::tool_calls(&Self, item)
    }
}

impl WireJson for Responses {
    fn see<'m, V: View<'m>>(self, item: V, see: &mut dyn FnMut(Piece<'m>)) {
        match kind_of(item) {
            "message" => {
                see(Piece::Role(match item.text("role") {
                    "assistant" => Role::Assistant,
                    "user" => Role::User,
                    _ => Role::System,
                }));
                Self::show(item.get("content"), see);
            }
            kind @ ("function_call" | "custom_tool_call") => {
                see(Piece::Role(Role::Assistant));
                let arguments = Arguments::of(item.get(arguments_of(kind)));
                let (id, name) = (item.text("call_id"), item.text("name"));
                see(Piece::Call(Call {
                    id,
                    name,
                    arguments,
                    is_signed: false,
                    is_fixed: false,
                }));
            }
            kind if is_output(kind) => {
                see(Piece::Role(Role::Tool));
                let id = item.text("call_id");
                see(Piece::Result(ResultHead {
                    id,
                    name: None,
                    is_error: false,
                    is_fixed: false,
                }));
                Self::show_slot(item.get("output"), see);
            }
            "reasoning" => {
                see(Piece::Role(Role::Assistant));
                Self::show(item.get("summary"), see);
                Self::show(item.get("content"), see);
            }
            // What the model did with tools of the provider, or did that has no other place.
            "computer_call"
            | "local_shell_call"
            | "shell_call"
            | "apply_patch_call"
            | "tool_search_call"
            | "web_search_call"
            | "file_search_call"
            | "code_interpreter_call"
            | "image_generation_call"
            | "mcp_call"
            | "mcp_list_tools"
            | "mcp_approval_request"
            | "compaction"
            | "item_reference" => {
                see(Piece::Role(Role::Assistant));
                see(Piece::Content(PartRef::Opaque(item.json())));
            }
            // No slots, but what comes after them is another turn.
            "computer_call_output"
            | "local_shell_call_output"
            | "shell_call_output"
            | "apply_patch_call_output"
            | "mcp_approval_response" => {
                see(Piece::Role(Role::User));
                see(Piece::Content(PartRef::Opaque(item.json())));
            }
            _ => {
                see(Piece::Role(Role::System));
                see(Piece::Content(PartRef::Opaque(item.json())));
            }
        }
    }

    fn result<'m, V: View<'m>>(
        self,
        item: V,
        slot: usize,
        parts: Vec<Part>,
    ) -> Option<Vec<Edit<'m>>> {
        let is_there = slot == 0 && is_output(item.text("type"));
        is_there.then(|| Self::replace(item, Vec::new(), "output", parts))
    }

    fn arguments<'m, V: View<'m>>(
        self,
        item: V,
        call: usize,
        arguments: String,
    ) -> Option<Vec<Edit<'m>>> {
        let kind = kind_of(item);
        let is_there = call == 0 && matches!(kind, "function_call" | "custom_tool_call");
        is_there.then(|| {
            vec![Edit::set(
                Vec::new(),
                arguments_of(kind),
                New::Value(Value::String(arguments)),
            )]
        })
    }
}

/// An item's type. A message may go without.
fn kind_of<'m, V: View<'m>>(item: V) -> &'m str {
    match item.get("type") {
        Some(kind) => kind.as_str().unwrap_or_default(),
        None if item.has("role") => "message",
        None => "",
    }
}

fn is_output(kind: &str) -> bool {
    matches!(kind, "function_call_output" | "custom_tool_call_output")
}

fn arguments_of(kind: &str) -> &'static str {
    if kind == "function_call" {
        "arguments"
    } else {
        "input"
    }
}

impl Blocks for Responses {
    fn is_text(kind: &str) -> bool {
        matches!(
            kind,
            "input_text" | "output_text" | "summary_text" | "reasoning_text" | "text"
        )
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
            "input_image" => part.get("image_url"),
            // A file with a name is more than its bytes.
            "input_file" if !part.has("filename") => {
                part.get("file_data").or_else(|| part.get("file_url"))
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
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Json(value) => json!({"type": "input_text", "text": value.to_string()}),
        Part::Media { mime, data } => {
            let url = format!("data:{mime};base64,{}", STANDARD.encode(&data));
            if mime.starts_with("image/") {
                json!({"type": "input_image", "image_url": url})
            } else {
                json!({"type": "input_file", "file_data": url})
            }
        }
        Part::Link { mime, url }
            if mime
                .as_deref()
                .is_some_and(|mime| !mime.starts_with("image/")) =>
        {
            json!({"type": "input_file", "file_url": url})
        }
        Part::Link { url, .. } => json!({"type": "input_image", "image_url": url}),
        Part::Opaque(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    fn seen(item: &Value) -> String {
        let mut out = String::new();
        Responses.visit(item, &mut |piece| out.push_str(&format!("{piece:?}\n")));
        out
    }

    #[test]
    fn what_is_seen_of_each_kind_of_item() {
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
        let all: Vec<String> = items.iter().map(seen).collect();
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
        Call(Call { id: "a", name: "grep", arguments: Text("{}"), is_signed: false, is_fixed: false })
        --
        Role(Assistant)
        Call(Call { id: "b", name: "patch", arguments: Text("*** Begin"), is_signed: false, is_fixed: false })
        --
        Role(Tool)
        Result(ResultHead { id: "a", name: None, is_error: false, is_fixed: false })
        Content(Text("one"))
        Content(Media { mime: "image/png", data: Base64("AA==") })
        Content(Opaque(Object {"type": String("input_file"), "file_id": String("file_1")}))
        --
        Role(Tool)
        Result(ResultHead { id: "b", name: None, is_error: false, is_fixed: false })
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
        Responses.replace_result(&mut changed, 0, vec!["hint".into()]);
        assert_eq!(changed, output("hint"));

        let call = |arguments: &str| json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments, "id": "fc_1", "x": []});
        let mut changed = call("{\"long\":1}");
        Responses.replace_arguments(&mut changed, 0, "{}".into());
        assert_eq!(changed, call("{}"));
        let mut custom =
            json!({"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "long"});
        Responses.replace_arguments(&mut custom, 0, "{}".into());
        assert_eq!(custom["input"], "{}");
    }

    #[test]
    fn malformed_items_are_seen_as_what_they_are() {
        for odd in [
            json!(null),
            json!([]),
            json!({}),
            json!({"type": 1}),
            json!({"type": "message", "content": [null, 7]}),
        ] {
            assert!(seen(&odd).starts_with("Role("), "{odd}");
            let mut changed = odd.clone();
            Responses.replace_result(&mut changed, 0, vec![]);
            Responses.replace_arguments(&mut changed, 0, "{}".into());
            assert_eq!(changed, odd);
        }
    }
}
