//! Server-sent events as they came, and their messages, which can be replaced.

use bytes::Bytes;
use futures_util::{TryStream, TryStreamExt as _};

use super::room::TakenRoom;
use crate::gateway::message::{BYTE_ORDER_MARK, on_one_line};

/// Number of bytes at the end of an event that tell that it is whole.
const END: usize = 3;

/// Reads a stream of events, byte for byte.
#[derive(Debug)]
pub struct Events<S> {
    stream: S,
    /// The rest of the bytes that were read last.
    chunk: Bytes,
    max: usize,
    /// The room that the event takes; `None` if it is not bounded.
    room: Option<TakenRoom>,
    /// The event so far.
    event: Vec<u8>,
    /// True within an event that is over the maximum, of which only the last bytes are kept.
    is_long: bool,
}

/// A piece of the stream. All pieces together are the stream, without events over the maximum, and without one that its
/// end has cut off, which is none.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamChunk {
    /// A whole event, with the empty line that ends it.
    Event(Vec<u8>),
    /// An event that is over the maximum, or for which there is no room.
    TooLong,
}

impl<S: TryStream<Ok = Bytes> + Unpin> Events<S> {
    /// The events of `stream`. One with more than `max` bytes is dropped.
    pub fn new(stream: S, max: usize) -> Self {
        Self {
            stream,
            chunk: Bytes::new(),
            max,
            room: None,
            event: Vec::new(),
            is_long: false,
        }
    }

    /// Reads only events for which there is `room`.
    pub(crate) fn within(mut self, room: TakenRoom) -> Self {
        self.room = Some(room);
        self
    }

    /// The next piece; `None` at the end. The room of the one before is given back. Safe to drop before it is ready.
    ///
    /// # Errors
    ///
    /// The stream can't be read.
    pub async fn next(&mut self) -> Result<Option<StreamChunk>, S::Error> {
        if let Some(room) = &mut self.room {
            room.clear();
        }
        loop {
            while self.chunk.is_empty() {
                let Some(chunk) = self.stream.try_next().await? else {
                    return Ok(None);
                };
                self.chunk = chunk;
            }
            let length = lines(&self.chunk).next().map_or(0, <[u8]>::len);
            self.event.extend_from_slice(&self.chunk.split_to(length));
            let length = self.event.len();
            let is_end = lines(&self.event[length.saturating_sub(END)..])
                .last()
                .is_some_and(|line| line.ends_with(b"\n") && text(line).is_empty());
            let has_room = |room: &mut TakenRoom| room.grow(length);
            let is_long =
                self.is_long || length > self.max || !self.room.as_mut().is_none_or(has_room);
            if !is_long && is_end {
                return Ok(Some(StreamChunk::Event(std::mem::take(&mut self.event))));
            }
            if is_long {
                let kept = if is_end { 0 } else { END };
                self.event = self.event.split_off(length.saturating_sub(kept));
                if !std::mem::replace(&mut self.is_long, !is_end) {
                    return Ok(Some(StreamChunk::TooLong));
                }
            }
        }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next_message(&mut self) -> Option<Vec<u8>> {
        while let Some(chunk) = self.next().await.ok()? {
            if let StreamChunk::Event(event) = chunk
                && let Some(message) = message(&event)
            {
                return Some(message);
            }
        }
        None
    }
}

/// The message of an event, if it has one.
#[must_use]
pub fn message(event: &[u8]) -> Option<Vec<u8>> {
    let mut message: Option<Vec<u8>> = None;
    let mut is_other = false;
    for line in lines(event) {
        match field(line) {
            (b"event", value) => is_other = !matches!(value, b"" | b"message"),
            (b"data", value) => match &mut message {
                Some(message) => {
                    message.push(b'\n');
                    message.extend_from_slice(value);
                }
                None => message = Some(value.to_vec()),
            },
            _ => {}
        }
    }
    message.filter(|message| !message.is_empty() && !is_other)
}

/// The event with another message in place of the old one's first line; its other lines stay as they are.
#[must_use]
pub fn with_message(event: &[u8], message: &str) -> Vec<u8> {
    let mut message = Some(message);
    let mut all = Vec::with_capacity(event.len());
    for line in lines(event) {
        if field(line).0 != b"data" {
            all.extend_from_slice(line);
        } else if let Some(message) = message.take() {
            all.extend_from_slice(b"data: ");
            all.extend(on_one_line(message.as_bytes()));
            all.extend_from_slice(&line[text(line).len()..]);
        }
    }
    all
}

/// The name and the value of a line, which may begin with the byte order mark of its stream.
pub(crate) fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let line = text(line);
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let colon = memchr::memchr(b':', line).unwrap_or(line.len());
    let (name, value) = line.split_at(colon);
    let value = value.strip_prefix(b":").unwrap_or(value);
    (name, value.strip_prefix(b" ").unwrap_or(value))
}

/// A line without its end.
fn text(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The lines of an event, each with its end. A carriage return alone ends none, since no server writes it.
pub(crate) fn lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = event;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        (!line.is_empty()).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{FutureExt as _, StreamExt as _, stream};
    use proptest::prelude::*;
    use tokio::sync::mpsc;

    use super::*;

    fn chunks(stream: &[u8], max: usize) -> Vec<StreamChunk> {
        chunks_in_pieces(stream, Vec::new(), max)
    }

    /// The chunks of a stream that comes in pieces of the given lengths.
    fn chunks_in_pieces(mut stream: &[u8], reads: Vec<usize>, max: usize) -> Vec<StreamChunk> {
        let mut pieces = Vec::new();
        for length in reads {
            let (piece, rest) = stream.split_at(length.min(stream.len()));
            pieces.push(Ok::<_, Infallible>(Bytes::copy_from_slice(piece)));
            stream = rest;
        }
        pieces.push(Ok(Bytes::copy_from_slice(stream)));
        let mut events = Events::new(stream::iter(pieces), max);
        let next = || events.next().now_or_never().unwrap().unwrap();
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn events_are_split_and_a_message_is_replaced_in_its_place() {
        let stream = ": hello\n\nid: 1\nretry: 5\ndata: {\"a\":\ndata:1}\n\nevent: ping\r\ndata: x\r\n\r\ndata: cut";
        let all = chunks(stream.as_bytes(), 1000);
        let [
            StreamChunk::Event(comment),
            StreamChunk::Event(first),
            StreamChunk::Event(ping),
        ] = &all[..]
        else {
            panic!("{all:?}");
        };
        assert_eq!(
            (message(comment), message(ping)),
            (None, None),
            "nothing to read"
        );
        assert_eq!(message(first).unwrap(), b"{\"a\":\n1}");
        let new = with_message(first, "{\n\"b\": 2}");
        assert_eq!(
            String::from_utf8(new).unwrap(),
            "id: 1\nretry: 5\ndata: { \"b\": 2}\n\n"
        );
        assert_eq!(
            with_message(b"data: x\r\n\r\n", "y"),
            b"data: y\r\n\r\n".to_vec()
        );
    }

    #[test]
    fn an_event_does_not_wait_for_the_next_chunk() {
        let (to, mut from) = mpsc::unbounded_channel();
        let stream = stream::poll_fn(move |context| from.poll_recv(context));
        let mut events = Events::new(stream.map(Ok::<Bytes, Infallible>), 1_000);
        for text in ["data: a\n\n", "data: b\r\n\r\n", "\n", "\r\n"] {
            to.send(Bytes::copy_from_slice(text.as_bytes())).unwrap();
            let next = events.next().now_or_never().expect("it does not wait");
            assert_eq!(next.unwrap().unwrap(), StreamChunk::Event(text.into()));
        }
        let new = with_message(b"data: a\nid: 1\r\ndata\r\n\n", "c");
        assert_eq!(new, b"data: c\nid: 1\r\n\n");
    }

    #[test]
    fn an_event_over_the_maximum_is_dropped_and_the_next_is_read_again() {
        let long = "x".repeat(300_000);
        let stream = format!("data: a\n\ndata: {long}\ndata: {long}\n\ndata: b\n\n");
        let event = |text: &str| StreamChunk::Event(format!("data: {text}\n\n").into());
        let expected = [event("a"), StreamChunk::TooLong, event("b")];
        assert_eq!(chunks(stream.as_bytes(), 1000), expected);
        let cut = format!("data: {long}");
        assert_eq!(chunks(cut.as_bytes(), 1000), [StreamChunk::TooLong]);
    }

    proptest! {
        #[test]
        fn all_pieces_are_the_stream_up_to_the_last_events_end(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..300),
            reads in prop::collection::vec(1..50_usize, 0..40),
        ) {
            let mut all = Vec::new();
            for chunk in chunks_in_pieces(&bytes, reads, 1_000) {
                if let StreamChunk::Event(bytes) = chunk {
                    all.extend(bytes);
                }
            }
            prop_assert!(bytes.starts_with(&all));
            let rest = &bytes[all.len()..];
            prop_assert!(!lines(rest).any(|line| line.ends_with(b"\n") && text(line).is_empty()));
        }

        /// Wherever the stream is cut and events end, messages are those that the HTML standard names, and can be
        /// replaced.
        #[test]
        fn messages_are_the_specified_ones_and_can_be_replaced(
            stream in stream(),
            reads in prop::collection::vec(1..9_usize, 0..40),
            max in 0..60_usize,
        ) {
            let expected = specified(&stream);
            let mut found = Vec::new();
            for chunk in chunks_in_pieces(stream.as_bytes(), reads.clone(), 1 << 20) {
                let StreamChunk::Event(event) = chunk else { continue };
                let Some(said) = message(&event) else { continue };
                let new = with_message(&event, "{\"new\": 1}");
                prop_assert_eq!(message(&new).unwrap(), b"{\"new\": 1}");
                // The lines that are not the message's stay.
                let others = |event: &[u8]| {
                    let lines = lines(event).map(<[u8]>::to_vec);
                    lines.filter(|line| !line.starts_with(b"data")).collect::<Vec<_>>()
                };
                prop_assert_eq!(others(&new), others(&event));
                found.push((event.len() <= max, String::from_utf8(said).unwrap()));
            }
            let all: Vec<&String> = found.iter().map(|(_, said)| said).collect();
            prop_assert_eq!(all, expected.iter().collect::<Vec<_>>());

            // Long ones are dropped, and no others.
            let mut short = Vec::new();
            for chunk in chunks_in_pieces(stream.as_bytes(), reads, max) {
                if let StreamChunk::Event(event) = chunk {
                    short.extend(message(&event));
                }
            }
            let expected = found.into_iter().filter_map(|(is_short, said)| is_short.then_some(said.into_bytes()));
            prop_assert_eq!(short, expected.collect::<Vec<_>>());
        }
    }

    /// The messages of a stream as the HTML standard reads it. MCP has no empty ones.
    fn specified(stream: &str) -> Vec<String> {
        let stream = stream.replace("\r\n", "\n");
        let (mut all, mut data, mut kind) = (Vec::new(), Vec::new(), "");
        let lines = stream
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'));
        for line in lines {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                _ if line.is_empty() => {
                    let said = std::mem::take(&mut data).join("\n");
                    if !said.is_empty() && matches!(kind, "" | "message") {
                        all.push(said);
                    }
                    kind = "";
                }
                "data" => data.push(value),
                "event" => kind = value,
                _ => {}
            }
        }
        all
    }

    /// Streams of lines that are mostly fields.
    fn stream() -> impl Strategy<Value = String> {
        let name = prop_oneof![
            Just("data"),
            Just("data:"),
            Just("event:"),
            Just("id:"),
            Just("retry: "),
            Just(":"),
            Just("")
        ];
        let value = prop_oneof![
            Just(" {}"),
            Just("message"),
            Just(" ping"),
            Just("x: y"),
            Just(""),
            Just(" ä")
        ];
        let end = prop_oneof![3 => Just("\n"), 1 => Just("\r\n")];
        let line = (name, value, end).prop_map(|(name, value, end)| format!("{name}{value}{end}"));
        prop::collection::vec(line, 0..40).prop_map(|lines| lines.concat())
    }
}
