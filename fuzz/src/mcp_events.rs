//! Server-sent events of MCP servers: the reader finds the messages that the specification says, wherever
//! the stream is cut, and a stream passes byte for byte.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use offcut_mcp::http::events::{Events, StreamChunk, message, with_message};

/// A maximum that no input reaches.
const MAX: usize = 1 << 30;

/// The first byte is a maximum length; the second is the number of bytes that follow with the lengths of
/// chunks; the rest is the stream.
pub(crate) fn mcp_events(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(read(data));
}

async fn read(data: &[u8]) {
    let [max, cuts, rest @ ..] = data else { return };
    let (cuts, stream) = rest.split_at(usize::from(*cuts % 16).min(rest.len()));
    let (mut chunks, mut left) = (Vec::new(), stream);
    for cut in cuts {
        let (chunk, after) = left.split_at(usize::from(*cut).min(left.len()));
        chunks.push(chunk);
        left = after;
    }
    chunks.push(left);
    let expected = specified(stream);

    let mut found = Vec::new();
    let mut passed = Vec::new();
    let mut short = Vec::new();
    let max = usize::from(*max);
    for chunk in events(&chunks, MAX).await {
        let StreamChunk::Event(bytes) = chunk else {
            unreachable!("nothing is over this maximum")
        };
        passed.extend_from_slice(&bytes);
        let Some(said) = message(&bytes) else {
            continue;
        };
        let new = with_message(&bytes, "{\r\n\"new\": 1}");
        assert_eq!(message(&new).unwrap(), b"{  \"new\": 1}");
        assert_eq!(others(&new), others(&bytes), "its other lines stay");
        if bytes.len() <= max {
            short.push(said.clone());
        }
        found.push(said);
    }
    assert_eq!(found, expected);
    assert!(stream.starts_with(&passed));

    let within = events(&chunks, max).await.into_iter();
    let events = within.filter_map(|chunk| match chunk {
        StreamChunk::Event(event) => message(&event),
        StreamChunk::TooLong => None,
    });
    assert_eq!(events.collect::<Vec<_>>(), short, "long ones are dropped");
}

async fn events(chunks: &[&[u8]], max: usize) -> Vec<StreamChunk> {
    let chunks = chunks.iter().map(|chunk| Bytes::copy_from_slice(chunk));
    let mut events = Events::new(stream::iter(chunks.map(Ok::<_, Infallible>)), max);
    let mut all = Vec::new();
    while let Some(chunk) = events.next().await.unwrap() {
        all.push(chunk);
    }
    all
}

/// The lines of a stream, without the last one if it has no end.
fn lines(stream: &[u8]) -> Vec<Vec<u8>> {
    let lines = stream.split_inclusive(|byte| *byte == b'\n');
    let whole = lines.filter_map(|line| line.strip_suffix(b"\n"));
    let texts = whole.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    texts.map(<[u8]>::to_vec).collect()
}

/// The name and the value of a line.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    match line.iter().position(|byte| *byte == b':') {
        None => (line, b""),
        Some(at) => {
            let value = &line[at + 1..];
            (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
        }
    }
}

/// The messages of a stream as the HTML standard reads it, but that a mark of byte order may be before any line, and that
/// a carriage return alone ends none.
fn specified(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut data, mut kind) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines(stream) {
        match field(&line) {
            (b"data", value) => {
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            (b"event", value) => kind = value.to_vec(),
            _ if line.is_empty() => {
                let mut said: Vec<u8> = std::mem::take(&mut data);
                said.pop();
                let kind = std::mem::take(&mut kind);
                // MCP has no empty messages.
                if !said.is_empty() && (kind.is_empty() || kind == b"message") {
                    all.push(said);
                }
            }
            _ => {}
        }
    }
    all
}

/// The lines of an event that are not its message's.
fn others(event: &[u8]) -> Vec<Vec<u8>> {
    let lines = lines(event).into_iter();
    lines.filter(|line| field(line).0 != b"data").collect()
}
