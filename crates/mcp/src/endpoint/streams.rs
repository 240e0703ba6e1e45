//! The streams of events of one session: messages of the server, kept until a client has read them.

use std::collections::{BTreeMap, VecDeque};
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
#[derive(Debug, Default)]
pub(super) struct Streams {
    state: Mutex<State>,
    /// Wakes readers, and whoever waits for room.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The server's own, and those of answers, in the order in which they were opened.
    streams: BTreeMap<u64, Stream>,
    /// Number of the next stream.
    next: u64,
    /// Number of streams that have ended.
    ended: u64,
    /// Number of bytes of all events.
    held: usize,
    is_over: bool,
}

/// The events of one answer, or those of the server's own.
#[derive(Debug, Default)]
struct Stream {
    /// The newest events, as they are sent.
    events: VecDeque<Bytes>,
    /// Number of the next event.
    next: u64,
    /// Number of the first event that nobody has read.
    unread: u64,
    /// The reader that counts: a newer one takes the place of an older one.
    reader: u64,
    is_read: bool,
    /// Its number among the streams that have ended.
    ended: Option<u64>,
}

impl Stream {
    /// Number of the first event that is kept.
    fn first(&self) -> u64 {
        self.next - self.events.len() as u64
    }
}

impl Streams {
    /// The server's own stream, and none for an answer.
    pub(super) fn new() -> Arc<Self> {
        let streams = Self::default();
        streams.open(false);
        Arc::new(streams)
    }

    /// Opens a stream for an answer. One that `may_resume` begins with an event without a message,
    /// after which a client can take it up again. `None` once the session is over.
    pub(super) fn open(&self, may_resume: bool) -> Option<u64> {
        let mut state = locked(&self.state);
        if state.is_over {
            return None;
        }
        let nth = state.next;
        state.next += 1;
        state.streams.insert(nth, Stream::default());
        if may_resume {
            state.put(nth, b"");
        }
        Some(nth)
    }

    /// Adds a message to a stream.
    pub(super) fn put(&self, nth: u64, message: &[u8]) {
        locked(&self.state).put(nth, message);
        self.changed.notify_waiters();
    }

    /// Ends a stream: its reader has the answer.
    pub(super) fn end(&self, nth: u64) {
        let mut state = locked(&self.state);
        state.ended += 1;
        let ended = state.ended;
        if let Some(stream) = state.streams.get_mut(&nth) {
            stream.ended.get_or_insert(ended);
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
            stream.ended.get_or_insert(0);
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
        let at = number.checked_add(1)?;
        (stream.first()..=stream.next)
            .contains(&at)
            .then(|| self.reader(nth, stream, at))
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
    fn put(&mut self, nth: u64, message: &[u8]) {
        let Some(stream) = self
            .streams
            .get_mut(&nth)
            .filter(|stream| stream.ended.is_none())
        else {
            return;
        };
        let mut event = format!("id: {nth}-{}\ndata: ", stream.next).into_bytes();
        event.extend(on_one_line(message.trim_ascii_end()));
        event.extend_from_slice(b"\n\n");
        stream.next += 1;
        self.held += event.len();
        stream.events.push_back(event.into());
    }

    /// Drops what is too much: first what clients have been sent, then what no client comes for.
    fn forget(&mut self) {
        for is_unread_too in [false, true] {
            loop {
                let is_full = self.held > MAX_HELD;
                let is_done = |one: &Stream| {
                    one.unread == one.next || is_unread_too && is_full && !one.is_read
                };
                let ended = || self.streams.iter().filter(|(_, one)| one.ended.is_some());
                let is_much = is_full || ended().count() > MAX_ENDED;
                let gone = ended().filter(|(_, one)| is_much && is_done(one));
                let gone = gone.min_by_key(|(_, one)| one.ended);
                let gone = gone.map(|(nth, _)| *nth);
                let Some(gone) = gone.and_then(|nth| self.streams.remove(&nth)) else {
                    break;
                };
                self.held -= gone.events.iter().map(Bytes::len).sum::<usize>();
            }
            for stream in self.streams.values_mut() {
                while self.held > MAX_HELD
                    && (stream.first() < stream.unread || is_unread_too && !stream.is_read)
                    && let Some(event) = stream.events.pop_front()
                {
                    self.held -= event.len();
                    stream.unread = stream.unread.max(stream.first());
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
                let at = self.at.max(stream.first());
                let event = usize::try_from(at - stream.first());
                if let Some(event) = stream.events.get(event.unwrap_or(usize::MAX)).cloned() {
                    self.at = at + 1;
                    stream.unread = stream.unread.max(self.at);
                    drop(state);
                    streams.changed.notify_waiters();
                    return Some(event);
                }
                if stream.ended.is_some() {
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
    fn a_stream_that_has_just_ended_can_be_resumed() {
        let streams = Streams::new();
        let long = streams.open(true).unwrap();
        for _ in 0..MAX_ENDED {
            let nth = streams.open(false).unwrap();
            streams.end(nth);
        }
        streams.put(long, b"{}");
        let mut reader = streams.read(long).unwrap();
        while reader.next().now_or_never().is_some() {}
        drop(reader);
        streams.end(long);
        assert!(streams.resume(&format!("{long}-0")).is_some());
    }

    #[test]
    fn a_session_holds_little_that_its_client_has_not_read() {
        let message = [b"{", &*vec![b' '; 3 << 20], b"}"].concat();
        let streams = Streams::new();
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
