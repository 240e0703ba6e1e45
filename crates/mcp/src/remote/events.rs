//! Messages in a stream of server-sent events, in bounded memory.

use std::io;
use std::time::Duration;

use http::HeaderValue;
use tokio::io::AsyncRead;

use crate::gateway::lines::{Lines, Piece};
use crate::gateway::message::BYTE_ORDER_MARK;

/// The time after which a client connects again, unless the server names one.
const RETRY: Duration = Duration::from_secs(1);
/// The longest time that a server can name.
const MAX_RETRY: Duration = Duration::from_secs(300);
/// Number of bytes of a line that are not its message.
const FIELD_NAME: usize = 64;

/// The place that a client has reached in a server's stream.
#[derive(Debug)]
pub(crate) struct Place {
    /// The id of the last event that was whole. `None` if the server gives none.
    pub(crate) last_id: Option<HeaderValue>,
    pub(crate) retry: Duration,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            last_id: None,
            retry: RETRY,
        }
    }
}

/// Reads a stream of events.
#[derive(Debug)]
pub(crate) struct Events<R> {
    lines: Lines<R>,
    max: usize,
    event: Event,
    /// The bytes that were returned last.
    returned: Vec<u8>,
    /// True in a line over the maximum that is not a part of a message.
    is_skipping: bool,
    /// True after a line that ended in a carriage return, to which a line feed may still belong.
    is_after_return: bool,
}

/// The event that is being read.
#[derive(Debug, Default)]
struct Event {
    /// The message as far as it has come and was not returned.
    data: Vec<u8>,
    has_data: bool,
    /// True once a part of the message was returned.
    is_long: bool,
    /// True for events of other types.
    is_other: bool,
    id: Option<HeaderValue>,
}

/// A piece of a message. Line breaks in it have become spaces.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Data<'e> {
    /// A whole message.
    Whole(&'e [u8]),
    /// A part of a message that is longer than the maximum. The last one is empty.
    Part { bytes: &'e [u8], is_last: bool },
}

impl<R: AsyncRead + Unpin> Events<R> {
    /// The events of `reader`. A message with more than `max` bytes comes in parts.
    pub(crate) fn new(reader: R, max: usize) -> Self {
        Self {
            lines: Lines::of_events(reader, max.saturating_add(FIELD_NAME)),
            max,
            event: Event::default(),
            returned: Vec::new(),
            is_skipping: false,
            is_after_return: false,
        }
    }

    /// The next piece of a message; `None` at the end of the stream. An event that the stream's end
    /// has cut off is dropped. `place` follows. Safe to drop before it is ready.
    pub(crate) async fn next(&mut self, place: &mut Place) -> io::Result<Option<Data<'_>>> {
        self.returned = Vec::new();
        while let Some(piece) = self.lines.next().await? {
            let event = &mut self.event;
            match piece {
                Piece::Line(line) => {
                    let is_end = self.is_after_return && line == b"\n";
                    self.is_after_return = line.ends_with(b"\r");
                    let Some(line) = text(line).filter(|_| !is_end) else {
                        continue;
                    };
                    if !line.is_empty() {
                        event.field(line, place);
                    } else if let Some(ended) = self.end(place) {
                        self.returned = ended.data;
                        let bytes = &self.returned;
                        return Ok(Some(if ended.is_long {
                            Data::Part {
                                bytes,
                                is_last: true,
                            }
                        } else {
                            Data::Whole(bytes)
                        }));
                    }
                }
                Piece::Part {
                    bytes,
                    is_first,
                    is_last,
                } => {
                    let message = if is_first {
                        let message = bytes.strip_prefix(b"data:");
                        self.is_skipping = message.is_none();
                        message.map(|message| message.strip_prefix(b" ").unwrap_or(message))
                    } else {
                        Some(bytes).filter(|_| !self.is_skipping)
                    };
                    let message = message.filter(|_| !event.is_other).unwrap_or_default();
                    let message = text(message).filter(|_| is_last).unwrap_or(message);
                    self.is_after_return = bytes.ends_with(b"\r");
                    if is_first && !self.is_skipping {
                        event.begin_line();
                    }
                    event.data.extend_from_slice(message);
                }
            }
            let event = &mut self.event;
            if event.data.len() > self.max || event.is_long && !event.data.is_empty() {
                event.is_long = true;
                self.returned = std::mem::take(&mut event.data);
                return Ok(Some(Data::Part {
                    bytes: &self.returned,
                    is_last: false,
                }));
            }
        }
        Ok(None)
    }

    /// Ends the event. Returns it if it has a message.
    fn end(&mut self, place: &mut Place) -> Option<Event> {
        let mut event = std::mem::take(&mut self.event);
        if let Some(id) = event.id.take() {
            place.last_id = Some(id);
        }
        (event.is_long || !event.is_other && !event.data.is_empty()).then_some(event)
    }
}

impl Event {
    fn begin_line(&mut self) {
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b' ');
        }
    }

    /// Takes a line, which is not empty.
    fn field(&mut self, line: &[u8], place: &mut Place) {
        let (name, value) = field(line);
        match name {
            b"data" => {
                self.begin_line();
                self.data.extend_from_slice(value);
            }
            b"event" => self.is_other = !matches!(value, b"" | b"message"),
            b"id" => self.id = HeaderValue::from_bytes(value).ok(),
            b"retry" => {
                let millis = str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                if let Some(millis) = millis {
                    place.retry = Duration::from_millis(millis).min(MAX_RETRY);
                }
            }
            _ => {}
        }
    }
}

/// The name and the value of a line, which may begin with the byte order mark of its stream.
pub(crate) fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let colon = memchr::memchr(b':', line).unwrap_or(line.len());
    let (name, value) = line.split_at(colon);
    let value = value.strip_prefix(b":").unwrap_or(value);
    (name, value.strip_prefix(b" ").unwrap_or(value))
}

/// A line without its end; `None` if the end of the stream has cut it off.
pub(crate) fn text(line: &[u8]) -> Option<&[u8]> {
    match line.strip_suffix(b"\n") {
        Some(line) => Some(line.strip_suffix(b"\r").unwrap_or(line)),
        None => line.strip_suffix(b"\r"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pieces = (Vec<String>, Place);

    /// All messages of a stream; those that come in parts are put together.
    fn messages(stream: &str, max: usize) -> Pieces {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut events = Events::new(stream.as_bytes(), max);
        let (mut all, mut place) = (Vec::new(), Place::default());
        let mut is_open = false;
        while let Some(data) = runtime.block_on(events.next(&mut place)).unwrap() {
            let (bytes, is_last) = match data {
                Data::Whole(bytes) => (bytes, true),
                Data::Part { bytes, is_last } => (bytes, is_last),
            };
            if !is_open {
                all.push(String::new());
            }
            is_open = !is_last;
            all.last_mut()
                .unwrap()
                .push_str(str::from_utf8(bytes).unwrap());
        }
        (all, place)
    }

    #[test]
    fn messages_come_whole_and_other_events_do_not_come() {
        let stream = "\u{feff}data: 0\n\n: hello\n\nid: 1\nretry: 20\ndata:\n\nevent: message\r\nid: 2\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n\
            event: ping\ndata: x\n\ndata:y\n\nid: 4\ndata: cut off";
        let (all, place) = messages(stream, 1000);
        assert_eq!(all, ["0", "{\"a\": 1}", "y"]);
        assert_eq!(place.last_id.unwrap(), "2");
        assert_eq!(place.retry, Duration::from_millis(20));
    }

    #[test]
    fn carriage_returns_end_lines_alone_and_at_the_end_of_a_chunk() {
        let stream = "id: 1\rdata: a\r\rdata: b\rdata: c\n\rdata: d\r\n\r\ndata: e\r\r";
        for at in 0..=stream.len() {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let (first, second) = stream.as_bytes().split_at(at);
            let reader = tokio::io::AsyncReadExt::chain(first, second);
            let (mut events, mut place) = (Events::new(reader, 1_000), Place::default());
            let runtime = runtime.unwrap();
            let mut all = Vec::new();
            while let Some(data) = runtime.block_on(events.next(&mut place)).unwrap() {
                let Data::Whole(message) = data else {
                    unreachable!("it is short")
                };
                all.push(String::from_utf8(message.to_vec()).unwrap());
            }
            assert_eq!(all, ["a", "b c", "d", "e"], "cut at {at}");
        }
    }

    #[test]
    fn a_retry_and_an_id_of_nonsense_are_ignored() {
        let (all, place) = messages(
            "retry: soon\nid: a\0b\ndata: x\n\nretry: 99999999999\n\n",
            1000,
        );
        assert_eq!(all, ["x"]);
        assert!(place.last_id.is_none());
        assert_eq!(place.retry, MAX_RETRY);
    }

    #[test]
    fn messages_over_the_maximum_come_in_parts_with_the_same_bytes() {
        let long = "x".repeat(300_000);
        let stream = format!(
            "event: ping\ndata: {long}\n\n: {long}\n\nid: 7\ndata: {long}\r\ndata: {long}\r\n\r\ndata: y\n\ndata: {long}"
        );
        let (all, place) = messages(&stream, 1000);
        assert_eq!(all.len(), 3);
        assert_eq!(all[0], format!("{long} {long}"));
        assert_eq!(all[1], "y");
        assert_eq!(all[2], long);
        assert_eq!(place.last_id.unwrap(), "7");
    }
}
