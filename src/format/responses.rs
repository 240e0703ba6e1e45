//! Items of OpenAI's Responses API as wire JSON.

use crate::json::{Edit, View};
use serde_json::{Value, json};

use super::blocks::{
    Blocks, data_url, is_for_program, is_given, is_signed, loads_tools, new_arguments, read_url,
};
use super::wire_json::{Edits, TextPlace, WireJson};
use super::{Arguments, Call, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// The format of the items in the `input` of OpenAI's Responses API, as [`serde_json::Value`].
///
/// The outputs of function calls and of custom tool calls are slots. Calls and results of hosted
/// tools (web and file search, code interpreter, MCP), outputs with a prescribed shape (computer,
/// shell, patches) and items of an unknown kind are counted and never changed. The API has no error
/// mark for outputs, so none is read and none is written. For the order of keys, see the crate's
/// documentation on `preserve_order`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Responses;

impl Responses {
    /// The item that answers `call`, a function call, with `content`: one text is a string; anything
    /// else is a list of parts.
    pub(super) fn item(call: &ToolCall, content: Vec<Part>) -> Value {
        json!({"type": "function_call_output", "call_id": call.id, "output": Self::content(content)})
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
            kind @ ("function_call" | "custom_tool_call" | LOCAL_SHELL) => {
                see(Piece::Role(Role::Assistant));
                let arguments = Arguments::of(item.get(arguments_of(kind)));
                let is_fixed = kind == LOCAL_SHELL;
                let name = if is_fixed {
                    "local_shell"
                } else {
                    item.text("name")
                };
                let id = item.text("call_id");
                see(Piece::Call(Call {
                    is_fixed,
                    is_signed: is_signed(item),
                    is_for_program: is_for_program(item),
                    ..Call::new(id, name, arguments)
                }));
            }
            kind if is_output(kind) => {
                see(Piece::Role(Role::Tool));
                let output = item.get("output");
                see(Piece::Result(ResultHead {
                    is_for_program: is_for_program(item),
                    is_fixed: loads_tools(output),
                    id: item.text("call_id"),
                    ..ResultHead::default()
                }));
                Self::show_slot(output, see);
            }
            "reasoning" => {
                see(Piece::Role(Role::Assistant));
                Self::show(item.get("summary"), see);
                Self::show(item.get("content"), see);
            }
            // Not slots, but as the user's they end the model's turn.
            kind if kind.ends_with("_call_output") || kind == "mcp_approval_response" => {
                see(Piece::Role(Role::User));
                see(Piece::Content(PartRef::Opaque(item.json())));
            }
            // Calls of the provider's tools, and other items of the model.
            kind if kind.ends_with("_call")
                || kind.starts_with("mcp_")
                || matches!(kind, "compaction" | "compaction_summary" | "item_reference") =>
            {
                see(Piece::Role(Role::Assistant));
                see(Piece::Content(PartRef::Opaque(item.json())));
            }
            _ => {
                see(Piece::Role(Role::System));
                see(Piece::Content(PartRef::Opaque(item.json())));
            }
        }
    }

    fn result<'m, V: View<'m>>(self, item: V, slot: usize, parts: Vec<Part>) -> Edits<'m> {
        let is_there =
            slot == 0 && is_output(item.text("type")) && !loads_tools(item.get("output"));
        is_there.then(|| Self::replace(item, Vec::new(), "output", parts))
    }

    fn arguments<'m, V: View<'m>>(self, item: V, call: usize, new: String) -> Edits<'m> {
        let kind = kind_of(item);
        let is_there = call == 0 && matches!(kind, "function_call" | "custom_tool_call");
        let field = arguments_of(kind);
        let old = item.get(field);
        is_there.then(|| vec![Edit::set(Vec::new(), field, new_arguments(old, new))])
    }

    fn text_at<'m, V: View<'m>>(self, item: V, nth: usize) -> Option<TextPlace> {
        let is_user = kind_of(item) == "message" && item.text("role") == "user";
        is_user.then(|| Self::nth_text(item.get("content"), nth))?
    }
}

/// A call whose arguments have a prescribed shape. Some clients answer it as a function's.
const LOCAL_SHELL: &str = "local_shell_call";

/// An item's type, which a message may omit.
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
    match kind {
        "function_call" => "arguments",
        LOCAL_SHELL => "action",
        _ => "input",
    }
}

impl Blocks for Responses {
    const TEXT: &'static str = "input_text";

    fn text_field(kind: &str) -> Option<&'static str> {
        match kind {
            "input_text" | "output_text" | "summary_text" | "reasoning_text" | "text" => {
                Some("text")
            }
            "refusal" => Some("refusal"),
            _ => None,
        }
    }

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
    use crate::format::Format;
    use crate::format::tests::{expect_untouched, seen};

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
        Call(Call { id: "a", name: "grep", arguments: Text("{}"), is_signed: false, is_for_program: false, is_fixed: false })
        --
        Role(Assistant)
        Call(Call { id: "b", name: "patch", arguments: Text("*** Begin"), is_signed: false, is_for_program: false, is_fixed: false })
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
