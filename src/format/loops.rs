//! Formats that loops write in: definitions of tools, calls, and messages with results.

use serde_json::{Value, json};

use super::{Format, Message, Piece, Plain, WireFormat, anthropic, gemini, openai_chat, responses};
use crate::content::{Part, ToolCall};
use crate::tool::{Tool, ToolDefinition};

/// A format in which a loop also defines tools, reads calls and adds results.
///
/// ```
/// use offcut::ToolCall;
/// use offcut::format::{Anthropic, LoopFormat};
/// use serde_json::json;
///
/// let calls = [ToolCall::new("toolu_1", "grep", "{}"), ToolCall::new("toolu_2", "ls", "{}")];
/// let mut messages: Vec<_> = calls.iter().map(|call| Anthropic.tool_message(call, vec!["3 hits".into()], false)).collect();
/// Anthropic.join_results(&mut messages);
/// let [message] = &messages[..] else { panic!("Anthropic wants the results of parallel calls in one message") };
/// assert_eq!(message["content"][0], json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "3 hits"}));
/// ```
pub trait LoopFormat: Format {
    /// The definition of a tool, such as the reader: an element of a request's `tools`.
    fn tool(&self, tool: &dyn Tool) -> Value;

    /// The message that answers `call` with `content`. Formats without an error mark write none.
    fn tool_message(&self, call: &ToolCall, content: Vec<Part>, is_error: bool) -> Self::Message;

    /// Returns true if a result can have this part beside others: media of this type, or a blank text. By default, any.
    fn takes(&self, part: &Part) -> bool {
        let _ = part;
        true
    }

    /// The calls of an assistant's message, with their arguments as text.
    fn tool_calls(&self, message: &Self::Message) -> Vec<ToolCall> {
        let mut calls = Vec::new();
        self.visit(message, &mut |piece| {
            if let Piece::Call(call) = piece {
                calls.push(ToolCall {
                    is_for_program: call.is_for_program,
                    ..ToolCall::new(call.id, call.name, call.arguments.to_string())
                });
            }
        });
        calls
    }

    /// Joins the messages with results after the last assistant's message into one, where the
    /// provider wants the results of parallel calls together. Other formats change nothing, as in
    /// this default.
    fn join_results(&self, messages: &mut Vec<Self::Message>) {
        let _ = messages;
    }
}

/// Tools are defined as chat completions want them.
impl LoopFormat for Plain {
    fn tool(&self, tool: &dyn Tool) -> Value {
        WireFormat::OpenAiChat.tool(tool)
    }

    fn tool_message(&self, call: &ToolCall, content: Vec<Part>, is_error: bool) -> Message {
        Message::tool(call, content, is_error)
    }
}

/// Responses' definitions are not strict, since strict ones can't have optional arguments. Gemini's
/// arguments are a JSON schema, in `parametersJsonSchema`; for an endpoint that accepts only one
/// element, add its `functionDeclarations` to yours.
impl LoopFormat for WireFormat {
    fn tool(&self, tool: &dyn Tool) -> Value {
        let ToolDefinition {
            name,
            description,
            parameters,
        } = tool.definition();
        match self {
            Self::OpenAiChat => {
                json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
            }
            Self::Responses => {
                json!({"type": "function", "name": name, "description": description, "parameters": parameters, "strict": false})
            }
            Self::Anthropic => {
                json!({"name": name, "description": description, "input_schema": parameters})
            }
            Self::Gemini => {
                json!({"functionDeclarations": [{"name": name, "description": description, "parametersJsonSchema": parameters}]})
            }
        }
    }

    fn tool_message(&self, call: &ToolCall, content: Vec<Part>, is_error: bool) -> Value {
        match self {
            Self::OpenAiChat => openai_chat::message(call, content),
            Self::Responses => responses::item(call, content),
            Self::Anthropic => {
                json!({"role": "user", "content": [anthropic::block(call, content, is_error)]})
            }
            Self::Gemini => {
                json!({"role": "user", "parts": [gemini::part(call, content, is_error)]})
            }
        }
    }

    fn takes(&self, part: &Part) -> bool {
        !matches!(self, Self::Anthropic) || anthropic::takes_part(part)
    }

    fn join_results(&self, messages: &mut Vec<Value>) {
        let (field, role) = match self {
            Self::OpenAiChat | Self::Responses => return,
            Self::Anthropic => ("content", "assistant"),
            Self::Gemini => ("parts", "model"),
        };
        let is_result = |part: &Value| {
            part["type"] == "tool_result"
                || ["functionResponse", "function_response"]
                    .iter()
                    .any(|key| part.get(key).is_some())
        };
        let is_of_results = |message: &Value| {
            let parts = message[field].as_array();
            parts.is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_result))
        };
        let last = messages.iter().rposition(|message| message["role"] == role);
        let first = last.map_or(0, |last| last + 1);
        for mut message in messages.split_off(first) {
            let previous = messages[first..].last_mut();
            match previous.filter(|previous| is_of_results(previous) && is_of_results(&message)) {
                Some(previous) => {
                    let (results, more) = (&mut previous[field], message[field].take());
                    if let (Value::Array(results), Value::Array(more)) = (results, more) {
                        results.extend(more);
                    }
                }
                None => messages.push(message),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_results_are_joined() {
        let call = |id: &str| ToolCall::new(id, "f", "{}");
        let result =
            |format: WireFormat, id: &str| format.tool_message(&call(id), vec![id.into()], false);
        for (format, role, field) in [
            (WireFormat::Anthropic, "assistant", "content"),
            (WireFormat::Gemini, "model", "parts"),
        ] {
            let text = json!({"role": "user", field: [{"text": "go on"}]});
            let before = [
                result(format, "a"),
                result(format, "b"),
                json!({"role": role, field: [{"text": "hm"}]}),
            ];
            let mut messages = before.to_vec();
            messages.extend(["c", "d", "e"].map(|id| result(format, id)));
            messages.push(text.clone());
            messages.push(result(format, "f"));
            format.join_results(&mut messages);
            assert_eq!(messages[..3], before);
            assert_eq!(messages.len(), 6);
            assert_eq!(messages[3][field].as_array().unwrap().len(), 3);
            assert_eq!(messages[3][field][2], result(format, "e")[field][0]);
            assert_eq!(messages[4], text);
            let again = messages.clone();
            format.join_results(&mut messages);
            assert_eq!(messages, again);
        }
        for format in [WireFormat::OpenAiChat, WireFormat::Responses] {
            let mut messages = vec![result(format, "a"), result(format, "b")];
            format.join_results(&mut messages);
            assert_eq!(messages.len(), 2);
        }
    }
}
