//! The message types that conversations are driven in.

mod anthropic;
mod gemini;
mod responses;
mod spelled;

use std::fmt::Debug;

use bytes::Bytes;
use offcut::format::{Format, LoopFormat, Message, NewPiece, Piece, Plain, WireFormat};
use offcut::{Part, ToolCall};
use serde_json::{Value, json};

use super::generate::Speaker;

pub(crate) use spelled::OverText;

/// Gives each wire format a type of its own.
macro_rules! types_of_formats {
    ($($format:ident)*) => {$(
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $format;

        impl From<$format> for WireFormat {
            fn from(_: $format) -> Self {
                Self::$format
            }
        }

        impl Format for $format {
            type Message = Value;

            fn visit<'m>(&self, message: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
                WireFormat::$format.visit(message, see);
            }

            fn replace(&self, message: &mut Value, index: usize, new: NewPiece) {
                WireFormat::$format.replace(message, index, new);
            }

            fn has_text(&self, message: &Value, text: usize) -> bool {
                WireFormat::$format.has_text(message, text)
            }
        }

        impl $format {
            fn tool_message(self, call: &ToolCall, parts: Vec<Part>, is_error: bool) -> Value {
                WireFormat::$format.tool_message(call, parts, is_error)
            }
        }
    )*};
}

types_of_formats! { OpenAiChat Responses Anthropic Gemini }

/// A message type for generated conversations. `style` picks one of several ways to write one.
pub(crate) trait Wire:
    Format<Message: PartialEq + Debug> + Copy + Default + Debug + 'static
{
    fn say(self, speaker: Speaker, text: String, style: u8) -> Self::Message;
    /// Makes a turn that calls tools.
    fn ask(self, says: Option<String>, calls: &[ToolCall], style: u8) -> Vec<Self::Message>;
    fn answer(self, call: &ToolCall, parts: Vec<Part>, is_error: bool, style: u8) -> Self::Message;
    /// Makes a message that no provider would send.
    fn odd(self, which: u8) -> Self::Message;
    fn json(self, message: &Self::Message) -> Value;
    fn parse(self, json: Value) -> Self::Message;
    /// Removes from a message everything that a pass may change: results' content and arguments.
    fn blank(self, json: &mut Value);
    /// Tells whether a provider accepts the message.
    fn is_valid(self, json: &Value) -> bool;

    /// Checks that a provider accepts the conversation.
    fn accepts(self, messages: &[Self::Message]) -> Result<(), String>;

    /// The contents of a message's results, as the message holds them.
    fn contents(self, json: &Value) -> Vec<&Value> {
        vec![&json["content"]]
    }

    /// Limits a tool's output to this format: to the kinds of parts it has, in the order it keeps.
    fn can_hold(self, parts: Vec<Part>) -> Vec<Part> {
        parts
    }

    /// Appends the results of `next` to those of `last`, if one message holds all results of a
    /// round. Returns whether it did.
    fn join(self, last: &mut Self::Message, next: &Self::Message) -> bool {
        let _ = (last, next);
        false
    }
}

impl Wire for Plain {
    fn say(self, speaker: Speaker, text: String, style: u8) -> Message {
        let mut content = vec![Part::Text(text)];
        if style & 1 != 0 {
            content.push(Part::Media {
                mime: "image/png".into(),
                data: Bytes::from_static(&[1, 2, 3]),
            });
        }
        match speaker {
            Speaker::User => Message::User { content },
            Speaker::Assistant => Message::Assistant {
                content,
                calls: Vec::new(),
            },
            Speaker::System => Message::System { content },
        }
    }

    fn ask(self, says: Option<String>, calls: &[ToolCall], _: u8) -> Vec<Message> {
        vec![Message::Assistant {
            content: says.map(Part::Text).into_iter().collect(),
            calls: calls.to_vec(),
        }]
    }

    fn answer(self, call: &ToolCall, parts: Vec<Part>, is_error: bool, style: u8) -> Message {
        let mut message = Message::tool(call, parts, is_error);
        if let Message::Tool { name, .. } = &mut message
            && style & 1 != 0
        {
            name.clear();
        }
        message
    }

    fn odd(self, which: u8) -> Message {
        let text = || Part::Text("odd\n".repeat(200));
        match which % 8 {
            0 => Message::Tool {
                call_id: String::new(),
                name: String::new(),
                content: Vec::new(),
                is_error: true,
            },
            1 => Message::Tool {
                call_id: "call_0".into(),
                name: String::new(),
                content: vec![text()],
                is_error: false,
            },
            2 => Message::Assistant {
                content: Vec::new(),
                calls: Vec::new(),
            },
            3 => Message::calls(vec![
                ToolCall::new("", "", ""),
                ToolCall::new("", "", "x".repeat(900)),
            ]),
            4 => Message::User {
                content: Vec::new(),
            },
            5 => Message::Tool {
                call_id: "call_0".into(),
                name: "grep".into(),
                content: vec![
                    Part::Opaque(Value::Null),
                    Part::Json(Value::Null),
                    Part::Text(String::new()),
                ],
                is_error: false,
            },
            6 => Message::System {
                content: vec![Part::Opaque(json!({"x": [1, {"y": "z".repeat(900)}]}))],
            },
            _ => Message::Assistant {
                content: vec![text(), text()],
                calls: vec![ToolCall::new("call_0", "grep", "null")],
            },
        }
    }

    fn json(self, message: &Message) -> Value {
        serde_json::to_value(message).unwrap()
    }

    fn parse(self, json: Value) -> Message {
        serde_json::from_value(json).unwrap()
    }

    fn blank(self, json: &mut Value) {
        if json["role"] == "tool" {
            json["content"] = Value::Null;
        }
        for call in json
            .get_mut("calls")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            call["arguments"] = Value::Null;
        }
    }

    fn is_valid(self, json: &Value) -> bool {
        serde_json::from_value::<Message>(json.clone()).is_ok()
    }

    fn accepts(self, _: &[Message]) -> Result<(), String> {
        Ok(())
    }
}

impl Wire for OpenAiChat {
    fn say(self, speaker: Speaker, text: String, style: u8) -> Value {
        let role = match speaker {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
            Speaker::System => ["system", "developer"][usize::from(style >> 7)],
        };
        let mut message = json!({"role": role, "content": text});
        if style & 1 != 0 {
            message["content"] = json!([
                {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            ]);
        }
        if style & 4 != 0 {
            message["zz_unknown"] = json!({"b": 1, "a": [null, "x"]});
        }
        if style & 64 != 0 && speaker == Speaker::Assistant {
            message["reasoning_content"] = json!("hm, ".repeat(10));
        }
        message
    }

    fn ask(self, says: Option<String>, calls: &[ToolCall], style: u8) -> Vec<Value> {
        let mut message = json!({"role": "assistant", "content": says});
        if let ([call], true) = (calls, style & 128 != 0) {
            message["function_call"] = json!({"name": call.name, "arguments": call.arguments});
            return vec![message];
        }
        message["tool_calls"] = calls.iter().map(|call| {
            let parsed = serde_json::from_str(&call.arguments).ok().filter(|_| style & 16 != 0);
            let arguments: Value = parsed.unwrap_or_else(|| call.arguments.clone().into());
            let mut raw = json!({"id": call.id, "type": "function", "index": 7, "function": {"arguments": arguments, "name": call.name}});
            if style & 2 != 0 {
                raw = json!({"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}});
            }
            if style & 32 != 0 {
                raw["extra_content"] = json!({"google": {"thought_signature": "c2ln"}});
            }
            raw
        }).collect();
        if style & 4 != 0 {
            message["zz_unknown"] = json!([1, 2]);
            message["annotations"] = json!([]);
        }
        vec![message]
    }

    fn answer(self, call: &ToolCall, parts: Vec<Part>, _: bool, style: u8) -> Value {
        let mut message = self.tool_message(call, parts, false);
        if style & 1 != 0
            && let Value::String(text) = &message["content"]
        {
            message["content"] = json!([{"type": "text", "text": text}]);
        }
        if style & 2 != 0
            && let Some(parts) = message["content"].as_array_mut()
            && let Some(text) = parts.iter_mut().rfind(|part| part["type"] == "text")
        {
            text["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        }
        if style & 4 != 0 {
            message["zz_unknown"] = json!({"b": 1, "a": "x"});
        }
        if style & 8 != 0 {
            message["name"] = json!(call.name);
        }
        if style & 128 != 0 {
            message["role"] = json!("function");
            message["name"] = json!(call.name);
            message
                .as_object_mut()
                .unwrap()
                .shift_remove("tool_call_id");
        }
        message
    }

    fn odd(self, which: u8) -> Value {
        let long = "odd ".repeat(300);
        match which % 20 {
            0 => json!(null),
            1 => json!("text"),
            2 => json!([1, [2]]),
            3 => json!({}),
            4 => json!({"role": 7, "content": {"a": long}}),
            5 => json!({"role": "tool"}),
            6 => json!({"role": "tool", "content": {"a": long}}),
            7 => json!({"role": "tool", "tool_call_id": 7, "content": 1e300}),
            8 => {
                json!({"role": "tool", "tool_call_id": "call_0", "content": [null, 1, long, [], {"type": 1}, {"type": "text"}]})
            }
            9 => {
                json!({"role": "tool", "content": [{"type": "image_url"}, {"type": "image_url", "image_url": "x"}, {"type": "input_audio"}]})
            }
            10 => json!({"role": "tool", "content": [
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{long}!")}},
                {"type": "image_url", "image_url": {"url": "data:,x"}},
                {"type": "file", "file": {"file_data": "data:;base64,AAAA"}},
                {"type": "input_audio", "input_audio": {"format": "wav", "data": "A"}},
            ]}),
            11 => json!({"role": "assistant", "tool_calls": "x"}),
            12 => {
                json!({"role": "assistant", "tool_calls": [null, 1, {}, {"function": 1}, {"function": {"arguments": {"a": long}}}]})
            }
            13 => json!({"role": "assistant", "function_call": {"arguments": long}}),
            14 => json!({"role": "assistant", "function_call": null, "tool_calls": []}),
            15 => json!({"role": "function", "content": long}),
            16 => {
                json!({"role": "assistant", "content": [{"type": "thinking", "thinking": long}], "tool_calls": [{"id": "call_0"}]})
            }
            17 => {
                json!({"role": "tool", "tool_call_id": "call_0", "content": [{"type": "text", "text": long, "x": 1}], "tool_calls": [
                    {"id": "call_0", "function": {"name": "grep", "arguments": long}},
                ]})
            }
            18 => {
                json!({"role": "assistant", "tool_calls": [{"id": "call_0", "name": "flat", "arguments": long}], "content": 1})
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
        fn clear(value: Option<&mut Value>) {
            if let Some(value) = value {
                *value = Value::Null;
            }
        }
        if json["role"] == "tool" || json["role"] == "function" {
            clear(json.get_mut("content"));
        }
        for call in json
            .get_mut("tool_calls")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            clear(
                call.get_mut("function")
                    .and_then(|function| function.get_mut("arguments")),
            );
            clear(
                call.get_mut("custom")
                    .and_then(|custom| custom.get_mut("input")),
            );
            clear(call.get_mut("arguments"));
        }
        clear(
            json.get_mut("function_call")
                .and_then(|call| call.get_mut("arguments")),
        );
    }

    fn is_valid(self, json: &Value) -> bool {
        super::valid::is_valid(json)
    }

    fn accepts(self, messages: &[Value]) -> Result<(), String> {
        offcut_testkit::validate(WireFormat::OpenAiChat, messages)
            .map_err(|error| error.to_string())
    }
}

/// Tells whether a provider accepts a message of results or calls, among the messages it needs.
fn is_valid_in_between<F: Wire<Message = Value>>(wire: F, json: &Value) -> bool {
    // A custom call gets a custom result.
    let tool = if json["type"]
        .as_str()
        .is_some_and(|kind| kind.starts_with("custom_"))
    {
        CUSTOM
    } else {
        "grep"
    };
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    wire.visit(json, &mut |piece| match piece {
        Piece::Call(call) => asked.push(ToolCall::new(call.id, call.name, "{}")),
        Piece::Result(head) => {
            answered.push(ToolCall::new(head.id, head.name.unwrap_or(tool), "{}"));
        }
        _ => {}
    });
    let mut around = vec![wire.say(Speaker::User, "go".into(), 0)];
    if !answered.is_empty() {
        around.extend(wire.ask(None, &answered, 0));
    }
    around.push(json.clone());
    for (nth, call) in asked.iter().enumerate() {
        let answer = wire.answer(call, vec!["x".into()], false, 0);
        if nth == 0 || !wire.join(around.last_mut().unwrap(), &answer) {
            around.push(answer);
        }
    }
    wire.accepts(&around).is_ok()
}

/// The tool called as a custom one by formats that tell custom tools from functions.
const CUSTOM: &str = "fetch";
