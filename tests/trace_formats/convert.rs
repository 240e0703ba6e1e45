//! Converts chat-completions transcripts to turns of a loop, and those to messages of any format.

use std::collections::HashMap;

use offcut::format::{LoopFormat, WireFormat};
use offcut::{Part, ToolCall};
use serde_json::{Value, json};

pub(crate) enum Step {
    Say(String, String),
    Ask(String, Vec<ToolCall>),
    Answer(ToolCall, String),
}

/// Reads the turns of a transcript. Each call gets a unique id that every provider accepts.
pub(crate) fn turns(messages: &[Value]) -> Vec<Step> {
    let mut turns = Vec::new();
    let (mut open, mut used): (Vec<(String, ToolCall)>, HashMap<String, usize>) =
        (Vec::new(), HashMap::new());
    for message in messages {
        let text = message["content"].as_str().unwrap_or_default().to_owned();
        match message["role"].as_str() {
            Some("tool") => {
                let at = open
                    .iter()
                    .position(|(id, _)| message["tool_call_id"] == **id)
                    .expect("a call");
                turns.push(Step::Answer(open.remove(at).1, text));
            }
            Some("assistant") => {
                let renamed = WireFormat::OpenAiChat
                    .tool_calls(message)
                    .into_iter()
                    .map(|call| {
                        let safe = call.id.replace(
                            |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-',
                            "_",
                        );
                        let times = used.entry(safe.clone()).or_default();
                        *times += 1;
                        let id = if *times > 1 {
                            format!("{safe}-{times}")
                        } else {
                            safe
                        };
                        (call.id.clone(), ToolCall { id, ..call })
                    });
                open = renamed.collect();
                turns.push(Step::Ask(
                    text,
                    open.iter().map(|(_, call)| call.clone()).collect(),
                ));
            }
            role => turns.push(Step::Say(role.unwrap_or_default().to_owned(), text)),
        }
    }
    turns
}

/// A growing conversation in one format.
pub(crate) struct Converter {
    format: WireFormat,
    pub(crate) messages: Vec<Value>,
}

impl Converter {
    pub(crate) fn new(format: WireFormat) -> Self {
        // Some transcripts begin with a message of the model, which some providers reject.
        let mut converter = Self {
            format,
            messages: Vec::new(),
        };
        converter.say("user", "Begin.");
        converter
    }

    pub(crate) fn say(&mut self, role: &str, text: &str) {
        // Most providers reject empty texts.
        if text.trim().is_empty() {
            return;
        }
        let role = match self.format {
            WireFormat::OpenAiChat | WireFormat::Responses => role,
            _ => "user",
        };
        self.push(match self.format {
            WireFormat::Gemini => json!({"role": role, "parts": [{"text": text}]}),
            _ => json!({"role": role, "content": text}),
        });
    }

    pub(crate) fn ask(&mut self, text: &str, calls: &[ToolCall]) {
        let object = |call: &ToolCall| {
            let parsed = serde_json::from_str::<Value>(&call.arguments)
                .ok()
                .filter(Value::is_object);
            parsed.unwrap_or_else(|| json!({"said": call.arguments}))
        };
        let said = Some(text).filter(|text| !text.trim().is_empty());
        if calls.is_empty() && said.is_none() {
            return;
        }
        match self.format {
            WireFormat::Responses => {
                if let Some(text) = said {
                    self.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}));
                }
                for ToolCall {
                    id,
                    name,
                    arguments,
                    ..
                } in calls
                {
                    self.push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments, "status": "completed"}));
                }
            }
            WireFormat::Anthropic => {
                let text = said.map(|text| json!({"type": "text", "text": text}));
                let calls = calls
                    .iter()
                    .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": object(call)}));
                self.push(json!({"role": "assistant", "content": text.into_iter().chain(calls).collect::<Value>()}));
            }
            WireFormat::Gemini => {
                let text = said.map(|text| json!({"text": text}));
                let calls = calls
                    .iter()
                    .map(|call| json!({"functionCall": {"id": call.id, "name": call.name, "args": object(call)}}));
                self.push(json!({"role": "model", "parts": text.into_iter().chain(calls).collect::<Value>()}));
            }
            _ => {
                let mut message = json!({"role": "assistant", "content": said});
                if !calls.is_empty() {
                    let function = |call: &ToolCall| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
                    message["tool_calls"] = calls.iter().map(function).collect();
                }
                self.push(message);
            }
        }
    }

    pub(crate) fn answer(&mut self, call: &ToolCall, parts: Vec<Part>) {
        let message = self.format.tool_message(call, parts, false);
        self.messages.push(message);
        self.format.join_results(&mut self.messages);
    }

    fn push(&mut self, message: Value) {
        self.messages.push(message);
    }
}
