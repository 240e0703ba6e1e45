//! Replies of a model in the words of each provider, whole and as streams.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use offcut::format::WireFormat;
use serde_json::{Value, json};

/// A turn of the model.
#[derive(Clone, Debug)]
pub enum Said {
    /// Calls: the id, the name and the arguments of each.
    Calls(Vec<(String, &'static str, Value)>),
    /// An answer.
    Text(String),
}

/// The protocol and the form of a reply, by the request's path and body.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub format: WireFormat,
    pub is_stream: bool,
}

impl Form {
    /// The form that a request asks for; `None` if it is not one for the model's next turn.
    pub fn of(path: &str, body: &Value) -> Option<Self> {
        let asks = body["stream"] == true;
        let (format, is_stream) = match path {
            _ if path.ends_with("/chat/completions") => (WireFormat::OpenAiChat, asks),
            _ if path.ends_with("/responses") => (WireFormat::Responses, asks),
            _ if path.ends_with("/messages") => (WireFormat::Anthropic, asks),
            _ if path.ends_with(":streamGenerateContent") => (WireFormat::Gemini, true),
            _ if path.ends_with(":generateContent") => (WireFormat::Gemini, false),
            _ => return None,
        };
        Some(Self { format, is_stream })
    }

    /// The field of a request that has the messages.
    pub fn field(self) -> &'static str {
        match self.format {
            WireFormat::Gemini => "contents",
            WireFormat::Responses => "input",
            _ => "messages",
        }
    }

    /// The media type of a reply.
    pub fn kind(self) -> &'static str {
        if self.is_stream {
            "text/event-stream"
        } else {
            "application/json"
        }
    }

    /// A reply. `tokens` is the length of the request.
    pub fn reply(self, said: &Said, number: usize, tokens: usize) -> String {
        match (self.format, self.is_stream) {
            (WireFormat::OpenAiChat, false) => chat::whole(said, number, tokens).to_string(),
            (WireFormat::OpenAiChat, true) => chat::events(said, number, tokens),
            (WireFormat::Responses, false) => responses::whole(said, number, tokens).to_string(),
            (WireFormat::Responses, true) => responses::events(said, number, tokens),
            (WireFormat::Anthropic, false) => anthropic::whole(said, number, tokens).to_string(),
            (WireFormat::Anthropic, true) => anthropic::events(said, number, tokens),
            (_, false) => gemini::whole(said, tokens).to_string(),
            (_, true) => format!("data: {}\r\n\r\n", gemini::whole(said, tokens)),
        }
    }

    /// The body of an error.
    pub fn error(self, status: u16, message: &str) -> String {
        let kind = match status {
            400 => "invalid_request_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        let error = match self.format {
            WireFormat::Anthropic => {
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            WireFormat::Gemini => {
                json!({"error": {"code": status, "message": message, "status": "UNAVAILABLE"}})
            }
            _ => json!({"error": {"type": kind, "message": message, "param": null, "code": null}}),
        };
        error.to_string()
    }
}
