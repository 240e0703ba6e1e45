//! Server-sent events as they came, and their messages, which can be replaced.

use bytes::Bytes;
use futures_util::{TryStream, TryStreamExt as _};

use super::room::TakenRoom;
use crate::gateway::message::{BYTE_ORDER_MARK, on_one_line};

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
    /// True within an event that is over the maximum.
    is_long: bool,
    /// True within a line.
    is_in_line: bool,
    /// True after a line that ended in a carriage return, to which a line feed may still belong.
    is_after_return: bool,
}

/// A piece of the stream. All pieces together are the stream, without events over the maximum.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamChunk {
    /// A whole event, with the empty line that ends it.
    Event(Vec<u8>),
    /// Bytes that belong to no event: one that the stream's end has cut off, or the last line feed of one that was
    /// whole without it.
    Rest(Vec<u8>),
    /// An event that is over the maximum, or for which there is no room.
    TooLong {
        /// False if it begins like a request or a notification.
        may_answer: bool,
    },
}

/// Number of bytes of a long event that are looked at.
const BEGINNING: usize = 512;

fn may_answer(event: &[u8]) -> bool {
    let beginning = &event[..event.len().min(BEGINNING)];
    let find = |name: &str| memchr::memmem::find(beginning, name.as_bytes());
    let at = |one, other| find(one).into_iter().chain(find(other)).min();
    at("\"method\"", "\"params\"")
        .is_none_or(|request| at("\"result\"", "\"error\"").is_some_and(|answer| answer < request))
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
            is_in_line: false,
            is_after_return: false,
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
                    let rest = std::mem::take(&mut self.event);
                    return Ok((!rest.is_empty()).then_some(StreamChunk::Rest(rest)));
                };
                self.chunk = chunk;
            }
            let length = lines(&self.chunk).next().map_or(0, <[u8]>::len);
            let line = &self.chunk.split_to(length)[..];
            let is_feed = self.is_after_return && line == b"\n";
            let is_alone = is_feed && self.event.is_empty();
            let is_end = !self.is_in_line && !is_feed && text(line) == Some(b"");
            self.is_after_return = line.ends_with(b"\r");
            self.is_in_line = text(line).is_none();
            if self.is_long {
                self.is_long = !is_end;
                continue;
            }
            self.event.extend_from_slice(line);
            let length = self.event.len();
            let has_room = |room: &mut TakenRoom| room.grow(length);
            if length > self.max || !self.room.as_mut().is_none_or(has_room) {
                let may_answer = may_answer(&std::mem::take(&mut self.event));
                self.is_long = !is_end;
                return Ok(Some(StreamChunk::TooLong { may_answer }));
            }
            if is_end {
                return Ok(Some(StreamChunk::Event(std::mem::take(&mut self.event))));
            }
            if is_alone {
                // Some clients wait for it.
                return Ok(Some(StreamChunk::Rest(std::mem::take(&mut self.event))));
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
        match field(text(line).unwrap_or(line)) {
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

/// The event with another message; its other lines stay as they are.
///
/// The message takes the place of the last line that was part of the old one. What follows that line
/// may be a line feed alone, which would end another line if it came right after its carriage return.
#[must_use]
pub fn with_message(event: &[u8], message: &str) -> Vec<u8> {
    let is_said = |line: &[u8]| field(text(line).unwrap_or(line)).0 == b"data";
    let mut left = lines(event).filter(|line| is_said(line)).count();
    let mut all = Vec::with_capacity(message.len() + 64);
    for line in lines(event) {
        if !is_said(line) {
            all.extend_from_slice(line);
            continue;
        }
        left -= 1;
        if left == 0 {
            all.extend_from_slice(b"data: ");
            all.extend(on_one_line(message.as_bytes()));
            let text = text(line).unwrap_or(line);
            all.extend_from_slice(&line[text.len()..]);
        }
    }
    all
}

/// The name and the value of a line, which may begin with the byte order mark of its stream.
pub(crate) fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let colon = memchr::memchr(b':', line).unwrap_or(line.len());
    let (name, value) = line.split_at(colon);
    let value = value.strip_prefix(b":").unwrap_or(value);
    (name, value.strip_prefix(b" ").unwrap_or(value))
}

/// A line without its end; `None` if it has none.
pub(crate) fn text(line: &[u8]) -> Option<&[u8]> {
    match line.strip_suffix(b"\n") {
        Some(line) => Some(line.strip_suffix(b"\r").unwrap_or(line)),
        None => line.strip_suffix(b"\r"),
    }
}

/// The lines of an event, each with its end.
pub(crate) fn lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = event;
    std::iter::from_fn(move || {
        let end = match memchr::memchr2(b'\n', b'\r', rest) {
            Some(at) if rest[at..].starts_with(b"\r\n") => at + 2,
            Some(at) => at + 1,
            None if rest.is_empty() => return None,
            None => rest.len(),
        };
        let (line, after) = rest.split_at(end);
        rest = after;
        Some(line)
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
            StreamChunk::Rest(bytes),
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
        assert_eq!(bytes, b"data: cut");
        assert_eq!(
            with_message(b"data: x\r\n\r\n", "y"),
            b"data: y\r\n\r\n".to_vec()
        );
    }

    #[test]
    fn an_event_that_ends_in_a_carriage_return_does_not_wait_for_the_next_chunk() {
        let (to, mut from) = mpsc::unbounded_channel();
        let stream = stream::poll_fn(move |context| from.poll_recv(context));
        let mut events = Events::new(stream.map(Ok::<Bytes, Infallible>), 1_000);
        let mut next = |text: &str| {
            to.send(Bytes::copy_from_slice(text.as_bytes())).unwrap();
            let next = events.next().now_or_never();
            next.expect("it does not wait").unwrap().unwrap()
        };
        let event = |text: &str| StreamChunk::Event(text.into());
        assert_eq!(next("data: a\r\r"), event("data: a\r\r"));
        assert_eq!(next("data: b\r\n\r"), event("data: b\r\n\r"));
        // Nor does the rest of its end.
        assert_eq!(next("\n"), StreamChunk::Rest(b"\n".to_vec()));
        assert_eq!(next("data: c\n\n"), event("data: c\n\n"));
        let new = with_message(b"id: 1\rdata: a\rdata: b\r\r", "c");
        assert_eq!(new, b"id: 1\rdata: c\r\r");
        let new = with_message(b"data: a\rdata: b\n\n", "c");
        assert_eq!(new, b"data: c\n\n");
        let new = with_message(b"data: a\nid: 1\rdata\n\n", "c");
        assert_eq!(new, b"id: 1\rdata: c\n\n");
    }

    #[test]
    fn an_event_over_the_maximum_is_dropped_and_the_next_is_read_again() {
        let long = "x".repeat(300_000);
        let stream = format!("data: a\n\ndata: {long}\ndata: {long}\n\ndata: b\n\n");
        let event = |text: &str| StreamChunk::Event(format!("data: {text}\n\n").into());
        let too_long = |may_answer| StreamChunk::TooLong { may_answer };
        let expected = [event("a"), too_long(true), event("b")];
        assert_eq!(chunks(stream.as_bytes(), 1000), expected);
        for (begin, is_answer) in [
            (r#"{"id":1,"result":{"method":"#, true),
            (r#"{"error":"#, true),
            (r#"{"id":1,"method":"x","params":{"result":"#, false),
            (r#"{"params":{"result":"#, false),
        ] {
            let stream = format!("data: {begin}{long}\n\n");
            assert_eq!(chunks(stream.as_bytes(), 1000), [too_long(is_answer)]);
        }
    }

    proptest! {
        #[test]
        fn all_pieces_are_the_stream(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..300),
            reads in prop::collection::vec(1..50_usize, 0..40),
        ) {
            let mut all = Vec::new();
            for chunk in chunks_in_pieces(&bytes, reads, 1_000) {
                if let StreamChunk::Event(bytes) | StreamChunk::Rest(bytes) = chunk {
                    all.extend(bytes);
                }
            }
            prop_assert_eq!(all, bytes);
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
        let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
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
        let end = prop_oneof![3 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\r")];
        let line = (name, value, end).prop_map(|(name, value, end)| format!("{name}{value}{end}"));
        prop::collection::vec(line, 0..40).prop_map(|lines| lines.concat())
    }
}
