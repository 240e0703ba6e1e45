//! A provider's replies, read from a copy as they pass: what was refused and why, and the count of input tokens.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use memchr::{memmem, memrchr2};
use serde_json::Value;
use tokio::time::timeout;

use crate::gateway::body::{self, Body, BoxError};
use crate::gateway::encoding::{BodyDecoder, ContentEncoding};
use crate::usage::ProviderUsage;

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

/// Places of an error in the replies of providers, and the fields of it that may say so.
const ERRORS: [&str; 4] = ["", "/error", "/response/error", "/0/error"];
const SAYING: [&str; 5] = ["message", "code", "type", "status", "detail"];

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
    let mut errors = ERRORS.iter().filter_map(|at| error.pointer(at));
    errors.any(|error| {
        let fields = SAYING.iter().map(|field| &error[field]).chain([error]);
        fields.filter_map(Value::as_str).any(has_words)
    })
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
    let refused = first_event(&text).filter(is_too_long);
    let refused = refused.map(|_| Refused::TooLong);
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

/// The first event of a stream that says more than that the request has arrived; null if it is not JSON.
fn first_event(read: &[u8]) -> Option<Value> {
    let whole = memrchr2(b'\n', b'\r', read)?;
    let lines = read[..whole].split(|byte| matches!(byte, b'\n' | b'\r'));
    let mut events = lines.filter_map(|line| {
        let data = line.strip_prefix(b"data:")?;
        Some(serde_json::from_slice(data).unwrap_or_default())
    });
    events.find(|event: &Value| OPENING.iter().all(|kind| event["type"] != *kind))
}

/// Finds the usage in a reply that passes in pieces, in bounded memory.
struct UsageScan {
    decoder: Option<BodyDecoder>,
    is_stream: bool,
    /// The end of the line that has begun, or of all of a reply that is not a stream: at least [`TAIL`] bytes, and at
    /// most twice as many.
    held: Vec<u8>,
    found: ProviderUsage,
    on_end: Option<OnEnd>,
}

/// Called once, with the usage, when a reply has ended or its client has gone.
pub(crate) type OnEnd = Box<dyn FnOnce(ProviderUsage) + Send>;

/// Bytes of a line, or of a reply, that are held at its end. Providers count after the content.
const TAIL: usize = 32 * 1024;
/// The fields that hold the usage.
const FIELDS: [&[u8]; 2] = [b"\"usage\"", b"\"usageMetadata\""];
/// The most fields of these names that are read in one line.
const TRIES: usize = 16;

impl UsageScan {
    /// Prepares for a reply with these headers.
    fn new(headers: &HeaderMap, on_end: Option<OnEnd>) -> Self {
        Self {
            decoder: BodyDecoder::of(headers),
            is_stream: is_event_stream(headers),
            held: Vec::new(),
            found: ProviderUsage::default(),
            on_end,
        }
    }

    fn pass(&mut self, bytes: &[u8]) {
        let Some(mut decoder) = self.decoder.take() else {
            return;
        };
        let decoded = decoder.pass(bytes, |text| self.read(text));
        // A reply that can't be decoded is not read any further, and passes all the same.
        self.decoder = Some(decoder).filter(|_| decoded.is_ok());
    }

    fn read(&mut self, mut text: &[u8]) {
        if !self.is_stream {
            self.hold(text);
            return;
        }
        // Of CR LF, the second ends an empty line.
        while let Some(end) = text.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.hold(&text[..end]);
            self.end_line();
            text = &text[end + 1..];
        }
        self.hold(text);
    }

    fn hold(&mut self, text: &[u8]) {
        let text = &text[text.len().saturating_sub(TAIL)..];
        if self.held.len() + text.len() > 2 * TAIL {
            let tail = self.held.len().saturating_sub(TAIL);
            self.held.drain(..tail);
        }
        self.held.extend_from_slice(text);
    }

    fn end_line(&mut self) {
        self.found = found_in(&self.held).unwrap_or(self.found);
        self.held.clear();
    }

    /// The last usage of a reply that has ended: a stream repeats and corrects it.
    fn end(&mut self) -> ProviderUsage {
        self.end_line();
        self.found
    }
}

impl Drop for UsageScan {
    fn drop(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end(self.end());
        }
    }
}

/// Returns true for a reply whose content is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()?.split(';').next());
    kind.is_some_and(|name| name.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// The last usage in the end of some JSON.
fn found_in(text: &[u8]) -> Option<ProviderUsage> {
    // Within a string, a quote follows a backslash.
    let places = memmem::rfind_iter(text, b"\"usage");
    let places = places.filter(|&at| at == 0 || text[at - 1] != b'\\');
    let after = places.filter_map(|at| {
        let mut fields = FIELDS.iter();
        let after = fields.find_map(|field| text[at..].strip_prefix(*field))?;
        after.trim_ascii_start().strip_prefix(b":")
    });
    after.take(TRIES).find_map(|after| {
        let mut values = serde_json::Deserializer::from_slice(after).into_iter();
        ProviderUsage::of(&values.next()?.ok()?)
    })
}

/// The body of a reply with these headers, which passes untouched. `on_break` is called if it breaks off.
pub(crate) fn watched(
    body: Incoming,
    headers: &HeaderMap,
    on_end: OnEnd,
    on_break: impl Fn(&hyper::Error) + Send + 'static,
) -> Body {
    let mut scan = UsageScan::new(headers, Some(on_end));
    let body = offcut_mcp::http::flushed(body).map_frame(move |frame| {
        if let Some(data) = frame.data_ref() {
            scan.pass(data);
        }
        frame
    });
    body.map_err(move |error| -> BoxError {
        on_break(&error);
        error.into()
    })
    .boxed_unsync()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

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

    fn scanned(kind: &'static str, text: &str) -> ProviderUsage {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let mut scan = UsageScan::new(&headers, None);
        for piece in text.as_bytes().chunks(5) {
            scan.pass(piece);
        }
        scan.end()
    }

    #[test]
    fn each_provider_counts_in_its_own_words() {
        let usage = |fresh, cached, written| ProviderUsage {
            fresh,
            cached,
            written,
        };
        let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":90,\"cache_creation_input_tokens\":7,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n";
        assert_eq!(
            scanned("text/event-stream; charset=utf-8", anthropic),
            usage(3, Some(90), 7)
        );
        let chat = r#"{"choices":[],"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":60}}}"#;
        assert_eq!(scanned("application/json", chat), usage(40, Some(60), 0));
        let responses = "event: response.completed\r\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":50,\"input_tokens_details\":{\"cached_tokens\":20}}}}\r\n\r\n";
        assert_eq!(
            scanned("text/event-stream", responses),
            usage(30, Some(20), 0)
        );
        let gemini = "data: {\"usageMetadata\":{\"promptTokenCount\":11,\"cachedContentTokenCount\":1}}\r\n\r\ndata: {\"usageMetadata\":{\"promptTokenCount\":12}}";
        assert_eq!(scanned("text/event-stream", gemini), usage(12, None, 0));
        let old = "data: {\"usage\":{\"prompt_tokens\":8}}\r\rdata: [DONE]\r\r";
        assert_eq!(scanned("text/event-stream", old), usage(8, None, 0));
        assert_eq!(
            scanned("application/json", "half a {\"usage\""),
            ProviderUsage::default()
        );
    }

    #[test]
    fn a_usage_is_the_last_one_that_is_no_part_of_a_text() {
        let fresh = |text: &str| scanned("application/json", text).fresh;
        let args = r#""args":{"usage":{"input_tokens":5}}"#;
        let gemini =
            format!(r#"{{"candidates":[{{{args}}}], "usageMetadata" : {{"promptTokenCount":7}}}}"#);
        assert_eq!(fresh(&gemini), 7);
        let quoted = r#"{"usage":{"input_tokens":7},"text":"{\"usage\":{\"input_tokens\":5}}"}"#;
        assert_eq!(fresh(quoted), 7);
        let later =
            r#"{"usage":{"input_tokens":7},"x":{"usage":null,"usages":{"input_tokens":5}}}"#;
        assert_eq!(fresh(later), 7);
        // A stream of Gemini without `alt=sse` is one list, which may break off.
        let one = |tokens| {
            let usage = format!("\"usageMetadata\": {{\n \"promptTokenCount\": {tokens}\n}}");
            format!("{{\"candidates\": [],\n{usage}\n}}\n")
        };
        let list = format!("[{},\r\n{}]", one(11), one(12));
        assert_eq!(fresh(&list), 12);
        assert_eq!(fresh(&list[..list.len() - 20]), 11);
        let event = "data: {\"usage\":{\"prompt_tokens\":8}}\n\ndata: [DONE]\n\n";
        assert_eq!(scanned("Text/Event-Stream ;charset=utf-8", event).fresh, 8);
    }

    #[test]
    fn a_long_line_or_reply_takes_little_memory_and_its_end_is_read() {
        for kind in ["text/event-stream", "application/json"] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            let mut scan = UsageScan::new(&headers, None);
            scan.pass(b"data: {\"text\":\"");
            for length in [1, 100_000, TAIL, 5_000_000] {
                scan.pass(&vec![b'x'; length]);
                assert!(scan.held.len() <= 2 * TAIL && scan.held.capacity() <= 4 * TAIL);
            }
            scan.pass(b"\",\"usage\":{\"prompt_tokens\":1}}");
            assert_eq!(scan.end().fresh, 1);
        }
        // Each of them would be read to the end.
        let many = "\"usage\":{".repeat(200_000);
        assert_eq!(scanned("application/json", &many), ProviderUsage::default());
    }

    #[test]
    fn a_reply_that_decodes_to_far_more_is_not_decoded_to_its_end() {
        use std::io::Write;
        for kind in ["text/event-stream", "application/json"] {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            for _ in 0..100 {
                encoder.write_all(&[b' '; 1_000_000]).unwrap();
            }
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            let mut scan = UsageScan::new(&headers, None);
            scan.pass(&encoder.finish().unwrap());
            assert!(scan.decoder.is_none(), "{kind}");
            assert_eq!(scan.end(), ProviderUsage::default());
        }
    }
}
