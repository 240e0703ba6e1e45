//! Requests that a provider refuses.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use memchr::memrchr2;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::timeout;

use crate::gateway::body::{self, Body};
use crate::gateway::encoding::{BodyDecoder, ContentEncoding};
use crate::gateway::usage::is_event_stream;

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
const MESSAGES: [&str; 12] = [
    "/response/error/message",
    "/response/error/code",
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
fn says_too_long(body: &[u8]) -> bool {
    match serde_json::from_slice(body) {
        Ok(body) => is_too_long(&body),
        Err(_) => has_words(&String::from_utf8_lossy(body)),
    }
}

/// Returns true if an error says that the prompt is too long.
fn is_too_long(error: &Value) -> bool {
    let mut texts = MESSAGES.iter().filter_map(|at| error.pointer(at)?.as_str());
    texts.any(has_words)
}

fn has_words(text: &str) -> bool {
    let text = text.to_lowercase();
    TOO_LONG.iter().any(|words| text.contains(words))
}

/// Maximum length in bytes of the beginning of a reply that is examined.
const LONGEST_ERROR: usize = 1024 * 1024;

/// Time for the body of an error, which begins at once where the answer itself may take long.
const ERROR_TIME: Duration = Duration::from_secs(30);

/// Time for which the first events of a stream wait for the one that tells whether the request was taken.
const OPENING_TIME: Duration = Duration::from_secs(2);

/// Events that say only that a request has arrived.
const OPENING: [&str; 4] = [
    "response.created",
    "response.queued",
    "response.in_progress",
    "ping",
];

/// A provider's reason for not taking a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    TooLong,
    Otherwise,
}

/// Reads the beginning of a reply, within a time, if it may be a refusal. Returns the reply, whole again, and
/// whether the request was refused: by a status, or as too long by the first event of a stream.
pub(crate) async fn examined(
    reply: Response<Body>,
    patience: Duration,
) -> (Response<Body>, Option<Refused>) {
    let is_refusal = matches!(
        reply.status(),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::PAYLOAD_TOO_LARGE
    );
    let headers = reply.headers();
    let decoder = BodyDecoder::of(headers).filter(|_| is_event_stream(headers));
    if is_refusal {
        let (parts, body) = reply.into_parts();
        let encoding = ContentEncoding::of(&parts.headers);
        let (read, body) = begun(body, patience.min(ERROR_TIME), |_| true).await;
        let text = encoding.and_then(|encoding| encoding.decode(&read, LONGEST_ERROR));
        let is_too_long = parts.status == StatusCode::PAYLOAD_TOO_LARGE
            || text.is_some_and(|text| says_too_long(&text));
        let refused = match is_too_long {
            true => Refused::TooLong,
            false => Refused::Otherwise,
        };
        return (Response::from_parts(parts, body), Some(refused));
    }
    let Some(mut decoder) = decoder else {
        return (reply, None);
    };
    let (parts, body) = reply.into_parts();
    let (mut text, mut passed) = (Vec::new(), 0);
    let opens = |read: &[u8]| {
        let decoded = decoder.pass(&read[passed..], |piece| text.extend_from_slice(piece));
        passed = read.len();
        decoded.is_ok() && text.len() <= LONGEST_ERROR && first_event(&text).is_none()
    };
    let (_, body) = begun(body, patience.min(OPENING_TIME), opens).await;
    let event = first_event(&text).and_then(|event| serde_json::from_slice(event).ok());
    let refused = event.filter(is_too_long).map(|_| Refused::TooLong);
    (Response::from_parts(parts, body), refused)
}

/// Reads the beginning of a body as long as `goes_on` is true of it, within a time. Returns the beginning, and
/// the whole body again.
async fn begun(
    mut body: Body,
    patience: Duration,
    mut goes_on: impl FnMut(&[u8]) -> bool,
) -> (Bytes, Body) {
    let mut read = Vec::new();
    let next = timeout(patience, async {
        while read.len() <= LONGEST_ERROR && goes_on(&read) {
            let next = body.frame().await;
            let data = next
                .as_ref()
                .and_then(|next| next.as_ref().ok()?.data_ref());
            let Some(data) = data else {
                // Trailers, an error, or the end.
                return next;
            };
            read.extend_from_slice(data);
        }
        None
    })
    .await;
    let read = Bytes::from(read);
    (read.clone(), body::begun(read, next.ok().flatten(), body))
}

/// The data of the first event of a stream that says more than that the request has arrived.
fn first_event(read: &[u8]) -> Option<&[u8]> {
    let whole = memrchr2(b'\n', b'\r', read)?;
    let lines = read[..whole].split(|byte| matches!(byte, b'\n' | b'\r'));
    let mut events = lines.filter_map(|line| line.strip_prefix(b"data:"));
    events.find(|event| {
        let event: Option<TypedEvent<'_>> = serde_json::from_slice(event).ok();
        event.is_none_or(|event| !OPENING.contains(&&*event.kind))
    })
}

/// The type of an event.
#[derive(Deserialize)]
struct TypedEvent<'e> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'e, str>,
}

/// The part of a body that says so. Nothing else is kept.
#[derive(Deserialize)]
struct ThreadField {
    thread: Option<IgnoredAny>,
}

/// Returns true if a request to Anthropic continues a thread, so that its history is not on the wire.
pub(crate) fn is_thread(text: &str) -> bool {
    // The scan is cheap, and most bodies end here.
    if !text.contains("\"thread\"") {
        return false;
    }
    let body: Result<ThreadField, _> = serde_json::from_str(text);
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
