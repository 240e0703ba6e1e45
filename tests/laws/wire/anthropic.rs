//! Anthropic's messages, where one message holds all results of a round.

use offcut::format::WireFormat;
use offcut::{Part, ToolCall};
use serde_json::{Value, json};

use super::super::generate::Speaker;
use super::{Anthropic, Wire};

impl Wire for Anthropic {
    fn say(self, speaker: Speaker, text: String, style: u8) -> Value {
        // System texts have no message of their own.
        let role = if speaker == Speaker::Assistant {
            "assistant"
        } else {
            "user"
        };
        let mut message = json!({"role": role, "content": text});
        if style & 1 != 0 {
            message["content"] =
                json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
        }
        if style & 4 != 0 {
            message["zz_unknown"] = json!({"b": 1, "a": [null, "x"]});
        }
        message
    }

    fn ask(self, says: Option<String>, calls: &[ToolCall], style: u8) -> Vec<Value> {
        let mut blocks = Vec::new();
        if style & 64 != 0 {
            blocks.push(
                json!({"type": "thinking", "thinking": "hm, ".repeat(10), "signature": "c2ln"}),
            );
        }
        blocks.extend(says.map(|text| json!({"type": "text", "text": text})));
        blocks.extend(calls.iter().map(|call| {
            let input = serde_json::from_str::<Value>(&call.arguments)
                .ok()
                .filter(Value::is_object);
            let input = input.unwrap_or_else(|| json!({"said": call.arguments}));
            let mut block =
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input});
            if style & 32 != 0 {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
            block
        }));
        let mut message = json!({"role": "assistant", "content": blocks});
        if style & 4 != 0 {
            message["zz_unknown"] = json!([1, 2]);
        }
        vec![message]
    }

    fn answer(self, call: &ToolCall, parts: Vec<Part>, is_error: bool, style: u8) -> Value {
        let mut message = self.tool_message(call, parts, is_error);
        let block = &mut message["content"][0];
        if style & 1 != 0
            && let Value::String(text) = &block["content"]
            && !text.trim().is_empty()
        {
            block["content"] = json!([{"type": "text", "text": text}]);
        }
        if style & 2 != 0
            && let Some(parts) = block["content"].as_array_mut()
            && let Some(text) = parts.iter_mut().rfind(|part| part["type"] == "text")
        {
            text["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        }
        if style & 4 != 0 {
            block["zz_unknown"] = json!({"b": 1, "a": "x"});
        }
        if style & 8 != 0 {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
        if style & 16 != 0 {
            message["content"]
                .as_array_mut()
                .unwrap()
                .push(json!({"type": "text", "text": "Go on."}));
        }
        message
    }

    fn odd(self, which: u8) -> Value {
        let long = "odd ".repeat(300);
        match which % 14 {
            0 => json!(null),
            1 => json!([1, [2]]),
            2 => json!({}),
            3 => json!({"role": 7, "content": {"a": long}}),
            4 => json!({"role": "user", "content": []}),
            5 => {
                json!({"role": "user", "content": [{"type": "tool_result"}, {"type": "tool_result", "content": {"a": long}}]})
            }
            6 => json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": 7, "content": [null, 1, long, [], {"type": 1}, {"type": "text"}]},
                {"type": "tool_result", "tool_use_id": "call_0", "is_error": "yes", "content": long},
            ]}),
            7 => {
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": format!("{long}!")}},
                    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                    {"type": "document", "source": {"type": "url", "url": long}},
                    {"type": "document", "title": "x", "source": {"type": "text", "media_type": "text/plain", "data": long}},
                    {"type": "search_result", "source": "x", "title": "x", "content": [{"type": "text", "text": long}]},
                ]}]})
            }
            8 => {
                json!({"role": "assistant", "content": [{"type": "tool_use", "input": long}, {"type": "tool_use", "input": {"a": long}}]})
            }
            9 => {
                json!({"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": long}, {"type": "tool_use"}]})
            }
            10 => {
                json!({"role": "assistant", "content": [{"type": "web_search_tool_result", "content": [{"encrypted_content": long}]}]})
            }
            11 => {
                json!({"role": "assistant", "content": [{"type": "redacted_thinking", "data": long}, null, 7, long]})
            }
            12 => {
                json!({"role": "user", "content": [{"type": "text", "text": long}, {"type": "tool_result", "tool_use_id": "call_0", "content": long}]})
            }
            _ => json!({"role": "unheard of", "content": [{"type": "text", "text": long}]}),
        }
    }

    fn json(self, message: &Value) -> Value {
        message.clone()
    }

    fn parse(self, json: Value) -> Value {
        json
    }

    fn blank(self, json: &mut Value) {
        for block in json
            .get_mut("content")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let field = match block["type"].as_str() {
                Some("tool_result") => "content",
                Some("tool_use") => "input",
                _ => continue,
            };
            if let Some(value) = block.get_mut(field) {
                *value = Value::Null;
            }
        }
    }

    fn is_valid(self, json: &Value) -> bool {
        super::is_valid_in_between(self, json)
    }

    fn accepts(self, messages: &[Value]) -> Result<(), String> {
        offcut_testkit::validate(WireFormat::Anthropic, messages).map_err(|error| error.to_string())
    }

    fn contents(self, json: &Value) -> Vec<&Value> {
        let blocks = json["content"].as_array().into_iter().flatten();
        blocks
            .filter(|block| block["type"] == "tool_result")
            .map(|block| &block["content"])
            .collect()
    }

    /// Images and PDF are the only binary parts.
    fn can_hold(self, mut parts: Vec<Part>) -> Vec<Part> {
        for part in &mut parts {
            if let Part::Media { mime, .. } = part
                && !mime.starts_with("image/")
            {
                "application/pdf".clone_into(mime);
            }
        }
        parts
    }

    fn join(self, last: &mut Value, next: &Value) -> bool {
        let (last, next) = (
            last["content"].as_array_mut().unwrap(),
            next["content"].as_array().unwrap(),
        );
        // After the user's text there are no more results.
        let is_open = last
            .last()
            .is_some_and(|block| block["type"] == "tool_result");
        if is_open {
            last.extend(next.iter().cloned());
        }
        is_open
    }
}
