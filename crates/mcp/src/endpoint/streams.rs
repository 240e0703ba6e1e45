//! The streams of events of one session: messages of the server, kept until a client has read them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::gateway::message::on_one_line;
use crate::locked::locked;

/// The stream of messages that belong to no request.
pub(super) const OWN: u64 = 0;
/// Number of bytes of events that are kept: of those that a client has been sent, in case that they were lost on the
/// way, and of those for which no client comes.
const MAX_HELD: usize = 4 << 20;
/// Number of streams that are kept after their end.
const MAX_ENDED: usize = 64;

/// All streams of a session.
#[derive(Debug)]
pub(super) struct Streams {
    state: Mutex<State>,
    /// Wakes readers, and whoever waits for room.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// The server's own, and those of answers.
    streams: HashMap<u64, Stream>,
    last: u64,
    /// Streams that have ended, the oldest first.
    ended: VecDeque<u64>,
    /// Number of bytes of all events.
    held: usize,
    is_over: bool,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                streams: HashMap::from([(OWN, Stream::default())]),
                last: OWN,
                ended: VecDeque::new(),
                held: 0,
                is_over: false,
            }),
            changed: Notify::new(),
        }
    }
}

/// The events of one answer, or those of the server's own.
#[derive(Debug, Default)]
struct Stream {
    events: VecDeque<Event>,
    /// Number of the next event.
    next: u64,
    /// Number of the first event that nobody has read.
    unread: u64,
    /// The reader that counts: a newer one takes the place of an older one.
    reader: u64,
    is_read: bool,
    is_over: bool,
}

#[derive(Debug)]
struct Event {
    number: u64,
    /// The event as it is sent.
    bytes: Bytes,
}

impl Streams {
    /// Opens a stream for an answer. One that `may_resume` begins with an event without a message,
    /// after which a client can take it up again. `None` once the session is over.
    pub(super) fn open(&self, may_resume: bool) -> Option<u64> {
        let mut state = locked(&self.state);
        if state.is_over {
            return None;
        }
        state.last += 1;
        let nth = state.last;
        state.streams.insert(nth, Stream::default());
        if may_resume {
            state.put(nth, |number| {
                format!("id: {nth}-{number}\ndata: \n\n").into()
            });
        }
        Some(nth)
    }

    /// Adds a message to a stream.
    pub(super) fn put(&self, nth: u64, message: &[u8]) {
        let mut state = locked(&self.state);
        state.put(nth, |number| {
            let mut text = format!("id: {nth}-{number}\ndata: ").into_bytes();
            text.extend(on_one_line(message.trim_ascii_end()));
            text.extend_from_slice(b"\n\n");
            text.into()
        });
        drop(state);
        self.changed.notify_waiters();
    }

    /// Ends a stream: its reader has the answer.
    pub(super) fn end(&self, nth: u64) {
        let mut state = locked(&self.state);
        if let Some(stream) = state.streams.get_mut(&nth) {
            stream.is_over = true;
            state.ended.push_back(nth);
        }
        state.forget();
        drop(state);
        self.changed.notify_waiters();
    }

    /// Ends all streams.
    pub(super) fn end_all(&self) {
        let mut state = locked(&self.state);
        state.is_over = true;
        for stream in state.streams.values_mut() {
            stream.is_over = true;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Returns true if somebody reads a stream.
    pub(super) fn is_read(&self, nth: u64) -> bool {
        locked(&self.state)
            .streams
            .get(&nth)
            .is_some_and(|stream| stream.is_read)
    }

    /// Returns true if somebody reads one of the streams.
    pub(super) fn is_any_read(&self) -> bool {
        locked(&self.state)
            .streams
            .values()
            .any(|stream| stream.is_read)
    }

    /// Waits until clients have read enough.
    pub(super) async fn room(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = locked(&self.state);
                state.forget();
                if state.held <= MAX_HELD || state.is_over {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Reads a stream from its first event that nobody has read.
    pub(super) fn read(self: &Arc<Self>, nth: u64) -> Option<Reader> {
        let mut state = locked(&self.state);
        let stream = state.streams.get_mut(&nth)?;
        let at = stream.unread;
        Some(self.reader(nth, stream, at))
    }

    /// Takes up a stream after the event with this id. `None` if it is not known any more.
    pub(super) fn resume(self: &Arc<Self>, id: &str) -> Option<Reader> {
        let (nth, number) = id.split_once('-')?;
        let (nth, number): (u64, u64) = (nth.parse().ok()?, number.parse().ok()?);
        let mut state = locked(&self.state);
        let stream = state.streams.get_mut(&nth)?;
        let is_kept = |event: &Event| event.number <= number + 1;
        let is_whole =
            number.checked_add(1)? == stream.next || stream.events.front().is_some_and(is_kept);
        (is_whole && number < stream.next).then(|| self.reader(nth, stream, number + 1))
    }

    fn reader(self: &Arc<Self>, nth: u64, stream: &mut Stream, at: u64) -> Reader {
        stream.reader += 1;
        stream.is_read = true;
        // The one before has to see that it does not count any more.
        self.changed.notify_waiters();
        Reader {
            streams: self.clone(),
            nth,
            turn: stream.reader,
            at,
        }
    }
}

impl State {
    fn put(&mut self, nth: u64, event: impl FnOnce(u64) -> Bytes) {
        let Some(stream) = self.streams.get_mut(&nth).filter(|stream| !stream.is_over) else {
            return;
        };
        let number = stream.next;
        let bytes = event(number);
        stream.next += 1;
        self.held += bytes.len();
        stream.events.push_back(Event { number, bytes });
    }

    /// Drops what is too much: first what clients have been sent, then what no client comes for.
    fn forget(&mut self) {
        for is_unread_too in [false, true] {
            while self.ended.len() > MAX_ENDED || self.held > MAX_HELD {
                let is_unread_too = is_unread_too && self.held > MAX_HELD;
                let is_done = |nth: &u64| {
                    let stream = self.streams.get(nth);
                    stream.is_none_or(|one| one.unread == one.next || is_unread_too && !one.is_read)
                };
                let Some(at) = self.ended.iter().position(is_done) else {
                    break;
                };
                let gone = self.ended.remove(at);
                let gone = gone.and_then(|nth| self.streams.remove(&nth));
                let events = gone.iter().flat_map(|gone| &gone.events);
                self.held -= events.map(|event| event.bytes.len()).sum::<usize>();
            }
            for stream in self.streams.values_mut() {
                while self.held > MAX_HELD
                    && let Some(event) = stream.events.front()
                    && (event.number < stream.unread || is_unread_too && !stream.is_read)
                {
                    self.held -= event.bytes.len();
                    stream.unread = stream.unread.max(event.number + 1);
                    stream.events.pop_front();
                }
            }
        }
    }
}

/// Reads one stream. When it is dropped, another may take it up.
#[derive(Debug)]
pub(super) struct Reader {
    streams: Arc<Streams>,
    nth: u64,
    turn: u64,
    /// Number of the next event.
    at: u64,
}

impl Reader {
    /// The next event as it is sent; `None` at the end, or once another reads the stream.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let streams = self.streams.clone();
            let changed = streams.changed.notified();
            {
                let mut state = locked(&streams.state);
                let stream = state.streams.get_mut(&self.nth)?;
                if stream.reader != self.turn {
                    return None;
                }
                // Numbers follow each other.
                let first = stream.events.front().map_or(0, |event| event.number);
                let skipped = usize::try_from(self.at.saturating_sub(first)).unwrap_or(usize::MAX);
                if let Some(event) = stream.events.get(skipped) {
                    let bytes = event.bytes.clone();
                    self.at = event.number + 1;
                    stream.unread = stream.unread.max(self.at);
                    drop(state);
                    streams.changed.notify_waiters();
                    return Some(bytes);
                }
                if stream.is_over {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = locked(&self.streams.state);
        if let Some(stream) = state.streams.get_mut(&self.nth)
            && stream.reader == self.turn
        {
            stream.is_read = false;
        }
        drop(state);
        self.streams.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_session_holds_little_that_its_client_has_not_read() {
        let message = [b"{", &*vec![b' '; 3 << 20], b"}"].concat();
        let streams = Arc::new(Streams::default());
        let held = || locked(&streams.state).held;
        let mut reader = streams.read(OWN).unwrap();
        assert!(reader.next().now_or_never().is_none(), "nothing is there");
        // As the owner does: it takes the server's next message once there is room.
        while streams.room().now_or_never().is_some() {
            streams.put(OWN, &message);
        }
        assert!(held() > MAX_HELD && held() < MAX_HELD + message.len() + 100);
        // It goes on once its client reads.
        while reader.next().now_or_never().is_some() {}
        assert!(streams.room().now_or_never().is_some());
        while streams.room().now_or_never().is_some() {
            streams.put(OWN, &message);
        }
        // Events that nobody reads are dropped.
        drop(reader);
        assert!(streams.room().now_or_never().is_some());
        assert!(held() <= MAX_HELD);
    }
}
