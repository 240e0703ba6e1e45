//! The protocols in which agents talk to the model.

mod anthropic;
mod gemini;
mod responses;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use offcut::format::WireFormat;
use serde_json::{Value, json};

use crate::model::Call;

/// A provider's protocol.
#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    Anthropic,
    Gemini,
    Responses,
}

impl Protocol {
    /// The protocol of requests for `path`.
    pub fn of(path: &str) -> Self {
        if path.contains("/models/") {
            Self::Gemini
        } else if path.ends_with("/responses") {
            Self::Responses
        } else {
            Self::Anthropic
        }
    }

    /// The format of its messages.
    pub fn format(self) -> WireFormat {
        match self {
            Self::Anthropic => WireFormat::Anthropic,
            Self::Gemini => WireFormat::Gemini,
            Self::Responses => WireFormat::Responses,
        }
    }

    /// The field of a request that has the messages.
    pub fn field(self) -> &'static str {
        match self {
            Self::Anthropic => "messages",
            Self::Gemini => "contents",
            Self::Responses => "input",
        }
    }

    /// The answer to a request that asks for a number of tokens.
    pub fn count(self, path: &str, bytes: usize) -> Option<Response> {
        let (end, field) = match self {
            Self::Anthropic => ("/count_tokens", "input_tokens"),
            Self::Gemini => (":countTokens", "totalTokens"),
            Self::Responses => ("/input_tokens", "input_tokens"),
        };
        let is_asked = path.ends_with(end);
        is_asked.then(|| json!({field: bytes / 4}).to_string().into_response())
    }

    /// A reply with calls, or an answer if there are none. `round` is its number, and `tokens` the length of the request.
    pub fn reply(
        self,
        path: &str,
        request: &Value,
        calls: &[Call],
        round: usize,
        tokens: usize,
    ) -> Response {
        let events = match self {
            Self::Anthropic => anthropic::events(request, calls, round, tokens),
            Self::Responses => responses::events(calls, round, tokens),
            Self::Gemini => {
                let reply = gemini::reply(calls, round, tokens);
                if !path.ends_with(":streamGenerateContent") {
                    return ([(CONTENT_TYPE, "application/json")], reply).into_response();
                }
                format!("data: {reply}\r\n\r\n")
            }
        };
        ([(CONTENT_TYPE, "text/event-stream")], events).into_response()
    }

    /// Returns true if a request asks for what is to take the place of its own messages.
    pub fn asks_to_compact(self, messages: &[Value]) -> bool {
        messages.last().is_some_and(|last| match self {
            Self::Responses => last["type"] == "compaction_trigger",
            Self::Anthropic => last.to_string().contains(anthropic::COMPACT),
            Self::Gemini => false,
        })
    }

    /// The reply to a request that asks for a compaction: a summary, or one that the provider has sealed.
    pub fn compacted(self, path: &str, request: &Value) -> Response {
        match self {
            Self::Responses => {
                let events = responses::compacted();
                ([(CONTENT_TYPE, "text/event-stream")], events).into_response()
            }
            Self::Anthropic | Self::Gemini => self.reply(path, request, &[], 0, 1_000),
        }
    }

    /// The answer to a request that breaks the provider's rules.
    pub fn refusal(self, message: &str) -> Response {
        let error = match self {
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
            }
            Self::Gemini => {
                json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})
            }
            Self::Responses => {
                json!({"error": {"type": "invalid_request_error", "message": message}})
            }
        };
        (StatusCode::BAD_REQUEST, error.to_string()).into_response()
    }
}
