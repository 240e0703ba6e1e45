//! Server-sent events as they came, and their messages, which can be replaced.

use std::io;

use tokio::io::AsyncRead;

use super::room::TakenRoom;
use crate::gateway::lines::{Lines, Piece};
use crate::gateway::message::{BYTE_ORDER_MARK, on_one_line};

/// Number of bytes of a line that are not put together from its parts.
const LINE: usize = 64 * 1024;

/// Reads a stream of events, byte for byte.
#[derive(Debug)]
pub struct Events<R> {
    lines: Lines<R>,
    max: usize,
    /// The room that the event takes; `None` if it is not bounded.
    room: Option<TakenRoom>,
    /// The event so far.
    event: Vec<u8>,
    /// True within an event that is longer than the maximum.
    is_long: bool,
    /// True after a line that ended in a carriage return, to which a line feed may still belong.
    is_after_return: bool,
}

/// A piece of the stream. All pieces together are the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamChunk {
    /// A whole event, with the empty line that ends it.
    Event(Vec<u8>),
    /// A part of an event that is too long to be read, or that the stream's end has cut off; or the last
    /// line feed of an event that was whole without it.
    Part {
        /// The part as it came.
        bytes: Vec<u8>,
        /// True at the beginning of a long event.
        is_first: bool,
        /// True at the end of a long event.
        is_last: bool,
    },
}

impl<R: AsyncRead + Unpin> Events<R> {
    /// The events of `reader`. One with more than `max` bytes comes in parts.
    pub fn new(reader: R, max: usize) -> Self {
        Self {
            lines: Lines::of_events(reader, LINE),
            max,
            room: None,
            event: Vec::new(),
            is_long: false,
            is_after_return: false,
        }
    }

    /// Reads only events for which there is `room`; others come in parts.
    pub(crate) fn within(mut self, room: TakenRoom) -> Self {
        self.room = Some(room);
        self
    }

    /// The next piece; `None` at the end. The room of the one before is given back. Safe to drop before it is ready.
    ///
    /// # Errors
    ///
    /// The stream can't be read.
    pub async fn next(&mut self) -> io::Result<Option<StreamChunk>> {
        if let Some(room) = &mut self.room {
            room.clear();
        }
        while let Some(piece) = self.lines.next().await? {
            let (bytes, is_line) = match piece {
                Piece::Line(line) => (line, true),
                Piece::Part { bytes, .. } => (bytes, false),
            };
            let is_rest = self.is_after_return && bytes == b"\n";
            self.is_after_return = bytes.ends_with(b"\r");
            // Some clients wait for it.
            let is_alone = is_rest && self.event.is_empty();
            self.event.extend_from_slice(bytes);
            let is_end = is_line && !is_rest && matches!(bytes, b"\n" | b"\r\n" | b"\r");
            if !self.is_long && is_end {
                return Ok(Some(StreamChunk::Event(std::mem::take(&mut self.event))));
            }
            if !self.is_long && is_alone {
                return Ok(Some(self.rest()));
            }
            let length = self.event.len();
            let has_room = |room: &mut TakenRoom| room.grow(length);
            if self.is_long || length > self.max || !self.room.as_mut().is_none_or(has_room) {
                let is_first = !std::mem::replace(&mut self.is_long, !is_end);
                let bytes = std::mem::take(&mut self.event);
                return Ok(Some(StreamChunk::Part {
                    bytes,
                    is_first,
                    is_last: is_end,
                }));
            }
        }
        Ok((!self.event.is_empty()).then(|| self.rest()))
    }

    /// The next message of a whole event; `None` at the end.
    pub(crate) async fn next_message(&mut self) -> Option<Vec<u8>> {
        while let Ok(Some(chunk)) = self.next().await {
            if let StreamChunk::Event(event) = chunk
                && let Some(message) = message(&event)
            {
                return Some(message);
            }
        }
        None
    }

    /// The bytes that belong to no event.
    fn rest(&mut self) -> StreamChunk {
        StreamChunk::Part {
            bytes: std::mem::take(&mut self.event),
            is_first: false,
            is_last: false,
        }
    }
}

/// The message of an event, if it has one.
#[must_use]
pub fn message(event: &[u8]) -> Option<Vec<u8>> {
    let mut message: Option<Vec<u8>> = None;
    let mut is_other = false;
    for line in lines(event) {
        match field(text(line).unwrap_or(line)) {
            (b"event", value) => is_other = !is_message_type(value),
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

/// The message of an event that comes in parts.
#[derive(Debug, Default)]
pub struct LongMessage {
    has_begun: bool,
    /// True if the part before has ended within a line.
    is_in_line: bool,
    /// True in a line that is part of the message.
    is_message: bool,
    /// True for events of other types.
    is_other: bool,
}

impl LongMessage {
    /// The pieces of the message that are in the next `part`, a line break between its lines.
    pub fn in_part<'p>(&mut self, part: &'p [u8]) -> impl Iterator<Item = &'p [u8]> {
        let pieces = lines(part).flat_map(|line| {
            let ended = text(line);
            let (mut value, mut between) = (ended.unwrap_or(line), &b""[..]);
            if !self.is_in_line {
                let name;
                (name, value) = field(value);
                self.is_other |= name == b"event" && !is_message_type(value);
                self.is_message = name == b"data" && !self.is_other;
                if self.is_message && std::mem::replace(&mut self.has_begun, true) {
                    between = b"\n";
                }
            }
            self.is_in_line = ended.is_none();
            [between, if self.is_message { value } else { b"" }]
        });
        pieces.filter(|piece| !piece.is_empty())
    }
}

fn is_message_type(value: &[u8]) -> bool {
    matches!(value, b"" | b"message")
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
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    fn chunks(stream: &[u8], max: usize) -> Vec<StreamChunk> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut events = Events::new(stream, max);
        let mut all = Vec::new();
        while let Some(chunk) = runtime.block_on(events.next()).unwrap() {
            all.push(chunk);
        }
        all
    }

    #[test]
    fn events_are_split_and_a_message_is_replaced_in_its_place() {
        let stream = ": hello\n\nid: 1\nretry: 5\ndata: {\"a\":\ndata:1}\n\nevent: ping\r\ndata: x\r\n\r\ndata: cut";
        let all = chunks(stream.as_bytes(), 1000);
        let [
            StreamChunk::Event(comment),
            StreamChunk::Event(first),
            StreamChunk::Event(ping),
            StreamChunk::Part { bytes, .. },
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
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.unwrap();
        let (mut to, from) = tokio::io::duplex(100);
        let mut events = Events::new(from, 1_000);
        let mut next = |text: &str| {
            runtime.block_on(async {
                to.write_all(text.as_bytes()).await.unwrap();
                events.next().await.unwrap().unwrap()
            })
        };
        let event = |text: &str| StreamChunk::Event(text.into());
        assert_eq!(next("data: a\r\r"), event("data: a\r\r"));
        assert_eq!(next("data: b\r\n\r"), event("data: b\r\n\r"));
        // Nor does the rest of its end.
        let rest = StreamChunk::Part {
            bytes: b"\n".to_vec(),
            is_first: false,
            is_last: false,
        };
        assert_eq!(next("\n"), rest);
        assert_eq!(next("data: c\n\n"), event("data: c\n\n"));
        let new = with_message(b"id: 1\rdata: a\rdata: b\r\r", "c");
        assert_eq!(new, b"id: 1\rdata: c\r\r");
        let new = with_message(b"data: a\rdata: b\n\n", "c");
        assert_eq!(new, b"data: c\n\n");
        let new = with_message(b"data: a\nid: 1\rdata\n\n", "c");
        assert_eq!(new, b"id: 1\rdata: c\n\n");
    }

    #[test]
    fn events_over_the_maximum_come_in_parts_and_the_next_is_read_again() {
        let long = "x".repeat(300_000);
        let stream = format!("data: a\n\ndata: {long}\ndata: {long}\n\ndata: b\n\n");
        let all = chunks(stream.as_bytes(), 1000);
        assert_eq!(
            all.first(),
            Some(&StreamChunk::Event(b"data: a\n\n".to_vec()))
        );
        assert_eq!(
            all.last(),
            Some(&StreamChunk::Event(b"data: b\n\n".to_vec()))
        );
        let parts = &all[1..all.len() - 1];
        let is_first =
            |chunk: &&StreamChunk| matches!(chunk, StreamChunk::Part { is_first: true, .. });
        assert_eq!(parts.iter().filter(is_first).count(), 1);
        assert!(
            parts
                .iter()
                .all(|chunk| matches!(chunk, StreamChunk::Part { .. }))
        );
    }

    proptest! {
        #[test]
        fn all_pieces_are_the_stream(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..300),
            max in 0..50_usize,
        ) {
            let mut all = Vec::new();
            for chunk in chunks(&bytes, max) {
                match chunk {
                    StreamChunk::Event(bytes) | StreamChunk::Part { bytes, .. } => all.extend(bytes),
                }
            }
            prop_assert_eq!(all, bytes);
        }

        /// Wherever events end, messages are those that the HTML standard names, and can be replaced.
        #[test]
        fn messages_are_the_specified_ones_and_can_be_replaced(stream in stream(), max in 0..60_usize) {
            let expected = specified(&stream);
            let mut found = Vec::new();
            for chunk in chunks(stream.as_bytes(), 1 << 20) {
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
                found.push(String::from_utf8(said).unwrap());
            }
            prop_assert_eq!(&found, &expected);

            // Those of events that come in parts, too.
            let (mut found, mut long) = (Vec::new(), None);
            for chunk in chunks(stream.as_bytes(), max) {
                match chunk {
                    StreamChunk::Event(event) => found.extend(message(&event)),
                    StreamChunk::Part { bytes, is_first, is_last } => {
                        if is_first {
                            long = Some((LongMessage::default(), Vec::new()));
                        }
                        let Some((reader, said)) = &mut long else { continue };
                        said.extend(reader.in_part(&bytes).flatten());
                        if is_last && let Some((_, said)) = long.take() && !said.is_empty() {
                            found.push(said);
                        }
                    }
                }
            }
            let expected: Vec<Vec<u8>> = expected.into_iter().map(String::into_bytes).collect();
            prop_assert!(found == expected || stream.contains("event:"));
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
