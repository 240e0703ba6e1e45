//! Requests that a provider refuses.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Words by which providers say that a request is too long. Clients react to them by compacting.
const TOO_LONG: [&str; 14] = [
    "prompt is too long",
    "input is too long",
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "too many tokens",
    "request_too_large",
    "maximum prompt length",
    "available context size",
    "exceed_context_size",
    "` must have less than",
    "max_new_tokens` must be",
];

/// Places of a message and its code in the errors of providers.
const MESSAGES: [&str; 10] = [
    "/error/message",
    "/error/code",
    "/error/type",
    "/error/status",
    "/error",
    "/message",
    "/code",
    "/type",
    "/detail",
    "/0/error/message",
];

/// Returns true if the body of a refusal says that the prompt is too long. Of JSON, only the message counts:
/// some servers send back what they refuse, and a tool's result may say anything.
pub(crate) fn says_too_long(body: &[u8]) -> bool {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(body) => {
            let place = |place: &str| body.pointer(place).and_then(Value::as_str);
            let words = MESSAGES.iter().filter_map(|at| place(at));
            words.collect::<Vec<_>>().join("\n")
        }
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let text = text.to_lowercase();
    TOO_LONG.iter().any(|words| text.contains(words))
}

/// The part of a body that says so. Nothing else is kept.
#[derive(Deserialize)]
struct Body {
    thread: Option<IgnoredAny>,
}

/// Returns true if a request to Anthropic continues a thread, so that its history is not on the wire.
pub(crate) fn is_thread(text: &str) -> bool {
    // The scan is cheap, and most bodies end here.
    if !text.contains("\"thread\"") {
        return false;
    }
    let body: Result<Body, _> = serde_json::from_str(text);
    body.is_ok_and(|body| body.thread.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_told_from_what_is_wrong() {
        for text in [
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","code":"context_length_exceeded"}}"#,
            r#"{"code":"invalid","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}"#,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            r#"{"error":"Input validation error: `inputs` must have less than 4095 tokens. Given: 9000","error_type":"validation"}"#,
            r#"{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        ] {
            assert!(says_too_long(text.as_bytes()), "{text}");
        }
        for text in [
            r#"{"error":{"message":"messages.3: `tool_result` without `tool_use`"}}"#,
            r#"{"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":{"content":"the context window"}}]}"#,
            "",
        ] {
            assert!(!says_too_long(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_thread_is_a_field_of_the_body_itself() {
        assert!(is_thread(
            r#"{"thread":{"type":"continue","id":"x"},"messages":[]}"#
        ));
        assert!(!is_thread(
            r#"{"messages":[{"role":"user","content":"\"thread\""}]}"#
        ));
        assert!(!is_thread(r#"{"thread":null,"messages":[{"thread":1}]}"#));
    }
}
