//! The provider's own count of input tokens, read from a copy of its reply.

use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use memchr::memmem;

use crate::gateway::body::{Body, BoxError};
use crate::gateway::encoding::BodyDecoder;
use crate::usage::ProviderUsage;

/// Finds the usage in a reply that passes in pieces, in bounded memory.
pub(crate) struct UsageScan {
    decoder: Option<BodyDecoder>,
    is_stream: bool,
    /// The end of the line that has begun, or of all of a reply that is not a stream: at least [`TAIL`] bytes, and at
    /// most twice as many.
    held: Vec<u8>,
    found: ProviderUsage,
}

/// Bytes of a line, or of a reply, that are held at its end. Providers count after the content.
const TAIL: usize = 32 * 1024;
/// The fields that hold the usage.
const FIELDS: [&[u8]; 2] = [b"\"usage\"", b"\"usageMetadata\""];
/// The most fields of these names that are read in one line.
const TRIES: usize = 16;
impl UsageScan {
    /// Prepares for a reply with these headers.
    pub(crate) fn new(headers: &HeaderMap) -> Self {
        Self {
            decoder: BodyDecoder::of(headers),
            is_stream: is_event_stream(headers),
            held: Vec::new(),
            found: ProviderUsage::default(),
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
    pub(crate) fn end(&mut self) -> ProviderUsage {
        self.end_line();
        self.found
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

/// A reply that passes, whose usage is told once it has ended.
struct WatchedReply {
    scan: UsageScan,
    on_end: Option<OnEnd>,
}

/// Called once, with the usage, when a reply has ended or its client has gone.
pub(crate) type OnEnd = Box<dyn FnOnce(ProviderUsage) + Send>;

impl Drop for WatchedReply {
    fn drop(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end(self.scan.end());
        }
    }
}

/// The body of a reply with these headers, which passes untouched. `on_break` is called if it breaks off.
pub(crate) fn watched(
    body: Incoming,
    headers: &HeaderMap,
    on_end: OnEnd,
    on_break: impl Fn(&hyper::Error) + Send + 'static,
) -> Body {
    let mut reply = WatchedReply {
        scan: UsageScan::new(headers),
        on_end: Some(on_end),
    };
    let body = offcut_mcp::http::flushed(body).map_frame(move |frame| {
        if let Some(data) = frame.data_ref() {
            reply.scan.pass(data);
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

    fn scanned(kind: &'static str, text: &str) -> ProviderUsage {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let mut scan = UsageScan::new(&headers);
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
            let mut scan = UsageScan::new(&headers);
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
            let mut scan = UsageScan::new(&headers);
            scan.pass(&encoder.finish().unwrap());
            assert!(scan.decoder.is_none(), "{kind}");
            assert_eq!(scan.end(), ProviderUsage::default());
        }
    }
}
