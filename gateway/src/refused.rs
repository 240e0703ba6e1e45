//! Requests that a provider refuses.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Words by which providers say that a request is too long. Clients react to them by compacting.
const TOO_LONG: [&str; 9] = [
    "prompt is too long",
    "input is too long",
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "too many tokens",
    "request_too_large",
];

/// Returns true if the body of a 400 says that the prompt is too long.
pub(crate) fn says_too_long(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_lowercase();
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
            r#"{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        ] {
            assert!(says_too_long(text.as_bytes()), "{text}");
        }
        for text in [
            r#"{"error":{"message":"messages.3: `tool_result` without `tool_use`"}}"#,
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
