//! Items of the Responses API.

use offcut::format::WireFormat;
use offcut::{Part, ToolCall};
use serde_json::{Value, json};

use super::super::generate::Speaker;
use super::{CUSTOM, Responses, Wire};

impl Wire for Responses {
    fn say(self, speaker: Speaker, text: String, style: u8) -> Value {
        let (role, kind) = match speaker {
            Speaker::User => ("user", "input_text"),
            Speaker::Assistant => ("assistant", "output_text"),
            Speaker::System => (
                ["system", "developer"][usize::from(style >> 7)],
                "input_text",
            ),
        };
        let mut item = json!({"role": role, "content": text});
        if style & 1 != 0 {
            item = json!({"type": "message", "role": role, "id": "msg_1", "content": [{"type": kind, "text": text, "annotations": []}]});
        }
        if style & 4 != 0 {
            item["zz_unknown"] = json!({"b": 1, "a": [null, "x"]});
        }
        item
    }

    fn ask(self, says: Option<String>, calls: &[ToolCall], style: u8) -> Vec<Value> {
        let mut items = Vec::new();
        if style & 64 != 0 {
            let summary = json!([{"type": "summary_text", "text": "hm, ".repeat(10)}]);
            items.push(json!({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "e30="}));
        }
        items.extend(says.map(|text| self.say(Speaker::Assistant, text, style)));
        items.extend(calls.iter().map(|call| {
            let ToolCall { id, name, arguments, .. } = call;
            let mut item = if name == CUSTOM {
                json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": arguments})
            } else {
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments, "id": "fc_1"})
            };
            if style & 4 != 0 {
                item["zz_unknown"] = json!([1, 2]);
            }
            item
        }));
        items
    }

    fn answer(self, call: &ToolCall, parts: Vec<Part>, _: bool, style: u8) -> Value {
        let mut item = self.tool_message(call, parts, false);
        if call.name == CUSTOM {
            item["type"] = json!("custom_tool_call_output");
        }
        if style & 1 != 0
            && let Value::String(text) = &item["output"]
        {
            item["output"] = json!([{"type": "input_text", "text": text}]);
        }
        if style & 2 != 0
            && let Some(parts) = item["output"].as_array_mut()
            && let Some(text) = parts.iter_mut().rfind(|part| part["type"] == "input_text")
        {
            text["cache_control"] = json!({"type": "ephemeral"});
        }
        if style & 4 != 0 {
            item["zz_unknown"] = json!({"b": 1, "a": "x"});
            item["status"] = json!("completed");
        }
        item
    }

    fn odd(self, which: u8) -> Value {
        let long = "odd ".repeat(300);
        match which % 14 {
            0 => json!(null),
            1 => json!([1, [2]]),
            2 => json!({}),
            3 => json!({"type": 7, "role": 7, "content": {"a": long}}),
            4 => json!({"type": "function_call_output"}),
            5 => json!({"type": "function_call_output", "call_id": 7, "output": {"a": long}}),
            6 => {
                json!({"type": "function_call_output", "call_id": "call_0", "output": [null, 1, long, [], {"type": 1}, {"type": "input_text"}]})
            }
            7 => json!({"type": "custom_tool_call_output", "call_id": "call_0", "output": [
                {"type": "input_image", "image_url": format!("data:image/png;base64,{long}!")},
                {"type": "input_file", "file_data": "data:;base64,AAAA"},
                {"type": "input_file", "filename": "x", "file_data": "data:;base64,AAAA"},
            ]}),
            8 => json!({"type": "function_call", "arguments": {"a": long}}),
            9 => json!({"type": "custom_tool_call", "call_id": "call_0", "input": null}),
            10 => {
                json!({"type": "shell_call_output", "call_id": "call_0", "output": [{"stdout": long}]})
            }
            11 => json!({"type": "mcp_call", "id": "m", "output": long}),
            12 => json!({"type": "reasoning", "summary": long, "content": 1}),
            _ => json!({"type": "unheard of", "output": long, "call_id": "call_0"}),
        }
    }

    fn json(self, item: &Value) -> Value {
        item.clone()
    }

    fn parse(self, json: Value) -> Value {
        json
    }

    fn blank(self, json: &mut Value) {
        let field = match json["type"].as_str() {
            Some("function_call_output" | "custom_tool_call_output") => "output",
            Some("function_call") => "arguments",
            Some("custom_tool_call") => "input",
            _ => return,
        };
        if let Some(value) = json.get_mut(field) {
            *value = Value::Null;
        }
    }

    fn is_valid(self, json: &Value) -> bool {
        super::is_valid_in_between(self, json)
    }

    fn accepts(self, items: &[Value]) -> Result<(), String> {
        offcut_testkit::validate(WireFormat::Responses, items).map_err(|error| error.to_string())
    }

    fn contents(self, json: &Value) -> Vec<&Value> {
        vec![&json["output"]]
    }
}
