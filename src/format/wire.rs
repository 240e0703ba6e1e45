//! Some wire format: one type for programs that learn only when they run which one a file is in.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::blocks::text_of;
use super::validate::{self, InvalidMessage};
use super::{Anthropic, Format, Gemini, OpenAiChat, Piece, Responses};
use crate::content::Part;

/// One of the formats of wire JSON. It is a [`Format`] itself.
///
/// ```
/// use offcut::format::WireFormat;
/// use serde_json::json;
/// let mut body = json!({"model": "…", "contents": [{"role": "user", "parts": [{"text": "hello"}]}]});
/// let format = WireFormat::detect(&body).expect("a conversation");
/// assert_eq!(format, WireFormat::Gemini);
/// let messages = WireFormat::messages(&mut body).expect("a conversation");
/// assert_eq!(format.validate(messages), Ok(()));
/// assert_eq!("gemini".parse(), Ok(format));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireFormat {
    /// [`OpenAiChat`]; its name is `openai-chat`.
    OpenAiChat,
    /// [`Responses`]; its name is `openai-responses`.
    Responses,
    /// [`Anthropic`]; its name is `anthropic`.
    Anthropic,
    /// [`Gemini`]; its name is `gemini`.
    Gemini,
}

/// Where a request's body holds its conversation.
const FIELDS: [&str; 3] = ["messages", "input", "contents"];

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAiChat, Self::Responses, Self::Anthropic, Self::Gemini];

    /// Its name, which it can be parsed from.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::Responses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The format of a conversation: a list of messages, or a request's body with one in `messages`, `input` or `contents`.
    ///
    /// The first message that can be of one format only decides. Where all could be of several, nothing but text is said in
    /// them, and chat completions are as good as any. `None` is no conversation.
    #[must_use]
    pub fn detect(document: &Value) -> Option<Self> {
        match document {
            Value::Array(messages) => detect(messages),
            Value::Object(body) => {
                let (field, messages) =
                    FIELDS.into_iter().find_map(|field| Some((field, body.get(field)?.as_array()?)))?;
                match field {
                    "input" => Some(Self::Responses),
                    "contents" => Some(Self::Gemini),
                    _ if body.contains_key("system") || body.contains_key("anthropic_version") => Some(Self::Anthropic),
                    _ => detect(messages),
                }
            }
            _ => None,
        }
    }

    /// The messages of a conversation as [`detect`](Self::detect) takes it.
    #[must_use]
    pub fn messages(document: &mut Value) -> Option<&mut Vec<Value>> {
        match document {
            Value::Array(messages) => Some(messages),
            Value::Object(body) => {
                let field = FIELDS.into_iter().find(|field| body.get(*field).is_some_and(Value::is_array))?;
                body.get_mut(field)?.as_array_mut()
            }
            _ => None,
        }
    }

    /// Whether a provider would take `messages`: shapes, roles, order, and a result for each call. What only some providers of
    /// the format ask for is not asked for here, nor is anything about models, tools and lengths.
    ///
    /// # Errors
    ///
    /// The first message that would be refused, and why.
    pub fn validate(self, messages: &[Value]) -> Result<(), InvalidMessage> {
        match self {
            Self::OpenAiChat => validate::openai_chat(messages),
            Self::Responses => validate::responses(messages),
            Self::Anthropic => validate::anthropic(messages),
            Self::Gemini => validate::gemini(messages),
        }
    }
}

impl Format for WireFormat {
    type Message = Value;

    fn visit<'m>(&self, message: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
        match self {
            Self::OpenAiChat => OpenAiChat.visit(message, see),
            Self::Responses => Responses.visit(message, see),
            Self::Anthropic => Anthropic.visit(message, see),
            Self::Gemini => Gemini.visit(message, see),
        }
    }

    fn replace_result(&self, message: &mut Value, slot: usize, parts: Vec<Part>) {
        match self {
            Self::OpenAiChat => OpenAiChat.replace_result(message, slot, parts),
            Self::Responses => Responses.replace_result(message, slot, parts),
            Self::Anthropic => Anthropic.replace_result(message, slot, parts),
            Self::Gemini => Gemini.replace_result(message, slot, parts),
        }
    }

    fn replace_arguments(&self, message: &mut Value, call: usize, arguments: String) {
        match self {
            Self::OpenAiChat => OpenAiChat.replace_arguments(message, call, arguments),
            Self::Responses => Responses.replace_arguments(message, call, arguments),
            Self::Anthropic => Anthropic.replace_arguments(message, call, arguments),
            Self::Gemini => Gemini.replace_arguments(message, call, arguments),
        }
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for WireFormat {
    type Err = UnknownWireFormat;

    fn from_str(name: &str) -> Result<Self, UnknownWireFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or(UnknownWireFormat)
    }
}

/// A name that is none of a [`WireFormat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are the formats `openai-chat`, `openai-responses`, `anthropic` and `gemini`")]
pub struct UnknownWireFormat;

fn detect(messages: &[Value]) -> Option<WireFormat> {
    let is_text =
        |message: &Value| message.get("role").is_some() && message.get("content").is_some_and(Value::is_string);
    // A list of texts is what Anthropic's clients write for an assistant. Others may too, and then say so elsewhere.
    let is_list = |message: &Value| {
        let parts = message.get("content").and_then(Value::as_array);
        text_of(message, "role") == "assistant"
            && parts.is_some_and(|parts| parts.iter().any(|part| text_of(part, "type") == "text"))
    };
    let any = |is: &dyn Fn(&Value) -> bool, format| messages.iter().any(is).then_some(format);
    let certain = messages.iter().find_map(only_format);
    certain.or_else(|| any(&is_list, WireFormat::Anthropic)).or_else(|| any(&is_text, WireFormat::OpenAiChat))
}

/// The one format that a message can be of, if there is just one.
fn only_format(message: &Value) -> Option<WireFormat> {
    let fields = message.as_object()?;
    if fields.contains_key("parts") {
        return Some(WireFormat::Gemini);
    }
    if let Some(kind) = fields.get("type") {
        // Entries of logs have types too, and messages inside of them.
        let is_item = match kind.as_str().unwrap_or_default() {
            "message" => fields.contains_key("role"),
            "reasoning" | "item_reference" | "compaction" => true,
            kind => kind.ends_with("_call") || kind.ends_with("_call_output") || kind.starts_with("mcp_"),
        };
        return is_item.then_some(WireFormat::Responses);
    }
    let is_chat = ["tool_calls", "tool_call_id", "function_call"].iter().any(|field| fields.contains_key(*field))
        || text_of(message, "role") == "function";
    if is_chat {
        return Some(WireFormat::OpenAiChat);
    }
    let parts = fields.get("content")?.as_array()?;
    parts.iter().find_map(|part| match text_of(part, "type") {
        "input_text" | "output_text" | "input_image" | "input_file" | "refusal" => Some(WireFormat::Responses),
        "image_url" | "input_audio" | "file" => Some(WireFormat::OpenAiChat),
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use" | "image" | "document" => {
            Some(WireFormat::Anthropic)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_of_each_kind_are_told_apart() {
        let text = json!({"role": "user", "content": "go"});
        for (expected, messages) in [
            (WireFormat::OpenAiChat, json!([text])),
            (WireFormat::OpenAiChat, json!([text, {"role": "assistant", "tool_calls": []}])),
            (WireFormat::OpenAiChat, json!([text, {"role": "tool", "tool_call_id": "a", "content": "x"}])),
            (WireFormat::Responses, json!([text, {"type": "reasoning", "summary": []}])),
            (WireFormat::Responses, json!([text, {"type": "function_call", "call_id": "a"}])),
            (WireFormat::Responses, json!([{"role": "user", "content": [{"type": "input_text", "text": "go"}]}])),
            (WireFormat::Anthropic, json!([text, {"role": "user", "content": [{"type": "tool_result"}]}])),
            (WireFormat::Anthropic, json!([text, {"role": "assistant", "content": [{"type": "text", "text": "x"}]}])),
            (
                WireFormat::OpenAiChat,
                json!([
                    text,
                    {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
                    {"role": "assistant", "tool_calls": []},
                ]),
            ),
            (WireFormat::Gemini, json!([{"parts": [{"text": "go"}]}])),
        ] {
            assert_eq!(WireFormat::detect(&messages), Some(expected), "{messages}");
            let field = match expected {
                WireFormat::Responses => "input",
                WireFormat::Gemini => "contents",
                _ => "messages",
            };
            let mut body = json!({"tools": [], field: messages});
            assert_eq!(WireFormat::detect(&body), Some(expected), "{body}");
            assert_eq!(WireFormat::messages(&mut body).map(|list| json!(list)), Some(messages));
        }
        assert_eq!(WireFormat::detect(&json!({"system": "x", "messages": [text]})), Some(WireFormat::Anthropic));
    }

    #[test]
    fn what_is_no_conversation_is_none() {
        let ours = json!([{"role": "user", "content": [{"type": "text", "value": "go"}]}]);
        let log = json!([
            {"type": "session_meta", "payload": {}}, {"type": "summary", "summary": "x"},
            {"type": "message", "id": "1", "message": {"role": "user", "content": "go"}},
        ]);
        for document in [json!(null), json!("x"), json!([]), json!([1, null]), json!({"input": "x"}), ours, log] {
            assert_eq!(WireFormat::detect(&document), None, "{document}");
        }
    }

    #[test]
    fn names_are_parsed() {
        for format in WireFormat::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert_eq!("openai".parse::<WireFormat>(), Err(UnknownWireFormat));
    }
}
