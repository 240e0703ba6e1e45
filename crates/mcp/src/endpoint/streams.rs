//! The streams of events of one session: messages of the server, each in the stream of the request to which it belongs,
//! kept until a client has read them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use offcut::json::View;
use tokio::sync::Notify;

use crate::gateway::message::{
    Message, is_message, key, may_be_dense, on_one_line, parse_or_outline,
};
use crate::locked::locked;

/// The stream of messages that belong to no request.
const OWN: u64 = 0;
/// Number of bytes of events that are kept: of those that a client has been sent, in case that they were lost on the
/// way, and of those for which no client comes.
const MAX_HELD: usize = 4 << 20;
/// Number of streams that are kept after their end.
const MAX_ENDED: usize = 64;
/// Maximum number of requests that wait. Servers do not answer those that were cancelled.
const MAX_WAITING: usize = 1024;

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
    /// Number of the newest stream.
    newest: u64,
    /// Number of streams that have ended.
    ended: u64,
    /// Number of bytes of all events.
    held: usize,
    is_over: bool,
}

/// A request to the server.
#[derive(Debug)]
pub(super) struct StreamRequest {
    /// Its id as the client wrote it, and as a key.
    pub(super) id: (String, String),
    /// Its progress token as a key.
    pub(super) token: Option<String>,
}

/// The events of one answer, or those of the server's own.
#[derive(Debug, Default)]
struct Stream {
    /// The request that is answered, and waits until the stream ends. `None` in the server's own.
    request: Option<StreamRequest>,
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
        let own = Stream::default();
        locked(&streams.state).streams.insert(OWN, own);
        Arc::new(streams)
    }

    /// Opens the stream of a request's answer. One that `may_resume` begins with an event without a message,
    /// after which a client can take it up again. `None` if another request with the same id still waits. If too many
    /// wait, the oldest is forgotten.
    pub(super) fn open(
        self: &Arc<Self>,
        request: StreamRequest,
        may_resume: bool,
    ) -> Option<Reader> {
        let mut state = locked(&self.state);
        if state.waiting(|one| one.id.1 == request.id.1).is_some() {
            return None;
        }
        state.newest += 1;
        let nth = state.newest;
        let stream = Stream {
            request: Some(request),
            ended: state.is_over.then_some(0),
            ..Stream::default()
        };
        state.streams.insert(nth, stream);
        if may_resume {
            state.put(nth, b"");
        }
        if state.open().count() > MAX_WAITING
            && let Some(oldest) = state.waiting(|_| true)
        {
            state.end(oldest);
        }
        self.reader(&mut state, nth, 0)
    }

    /// Adds a line of the server to the stream that it belongs to, and drops an answer for which nobody waits. Returns
    /// false if it is not a message.
    pub(super) fn pass(&self, line: &[u8]) -> bool {
        // The request that is answered, or that goes on.
        let (answered, token) = match parse_or_outline(line).filter(is_message) {
            Some(json) => match Message::read(&json) {
                Message::Response { id, .. } => (Some(key(id)), None),
                Message::Notification {
                    method: "notifications/progress",
                    params: Some(params),
                } => (None, params.get("progressToken").map(key)),
                _ => (None, None),
            },
            // A message of too many values to be read, and without an outline.
            None if may_be_dense(line) && line.trim_ascii().starts_with(b"{") => (None, None),
            None => return false,
        };
        let mut state = locked(&self.state);
        if let Some(key) = answered {
            if let Some(stream) = state.waiting(|one| one.id.1 == key) {
                state.put(stream, line);
                state.end(stream);
            }
        } else {
            let waiting = state.waiting(|one| token.is_some() && one.token == token);
            let stream = waiting.unwrap_or_else(|| state.any());
            state.put(stream, line);
        }
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Ends all streams, those of requests that wait with what `error` makes of their ids.
    pub(super) fn end_all(&self, error: impl Fn(&str) -> String) {
        let mut state = locked(&self.state);
        state.is_over = true;
        let id = |(nth, one): (u64, &StreamRequest)| (nth, one.id.0.clone());
        let waiting: Vec<(u64, String)> = state.open().map(id).collect();
        for (nth, id) in waiting {
            state.put(nth, error(&id).as_bytes());
        }
        for stream in state.streams.values_mut() {
            stream.ended.get_or_insert(0);
        }
        drop(state);
        self.changed.notify_waiters();
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

    /// Reads the server's own stream from its first event that nobody has read.
    pub(super) fn listen(self: &Arc<Self>) -> Option<Reader> {
        let mut state = locked(&self.state);
        let at = state.streams.get(&OWN)?.unread;
        self.reader(&mut state, OWN, at)
    }

    /// Takes up a stream after the event with this id. `None` if it is not known any more.
    pub(super) fn resume(self: &Arc<Self>, id: &str) -> Option<Reader> {
        let (nth, number) = id.split_once('-')?;
        let (nth, number): (u64, u64) = (nth.parse().ok()?, number.parse().ok()?);
        let mut state = locked(&self.state);
        let stream = state.streams.get(&nth)?;
        let at = number.checked_add(1)?;
        let is_kept = (stream.first()..=stream.next).contains(&at);
        is_kept.then(|| self.reader(&mut state, nth, at))?
    }

    fn reader(self: &Arc<Self>, state: &mut State, nth: u64, at: u64) -> Option<Reader> {
        let stream = state.streams.get_mut(&nth)?;
        stream.reader += 1;
        stream.is_read = true;
        // The one before has to see that it does not count any more.
        self.changed.notify_waiters();
        Some(Reader {
            streams: self.clone(),
            nth,
            turn: stream.reader,
            at,
        })
    }
}

impl State {
    /// The streams of requests that wait, the oldest first.
    fn open(&self) -> impl Iterator<Item = (u64, &StreamRequest)> {
        let open = self.streams.iter().filter(|(_, one)| one.ended.is_none());
        open.filter_map(|(nth, one)| Some((*nth, one.request.as_ref()?)))
    }

    /// The stream of the oldest request that waits and `is_meant`.
    fn waiting(&self, is_meant: impl Fn(&StreamRequest) -> bool) -> Option<u64> {
        self.open()
            .find_map(|(nth, one)| is_meant(one).then_some(nth))
    }

    /// The stream for a message that names no request: that of the only request there is, else the server's
    /// own, else that of the newest request.
    fn any(&self) -> u64 {
        let is_read = |nth: &u64| self.streams.get(nth).is_some_and(|one| one.is_read);
        let open: Vec<u64> = self.open().map(|(nth, _)| nth).filter(is_read).collect();
        match open[..] {
            [only] => only,
            _ if is_read(&OWN) => OWN,
            _ => open.last().copied().unwrap_or(OWN),
        }
    }

    /// Ends a stream: its reader has the answer.
    fn end(&mut self, nth: u64) {
        self.ended += 1;
        if let Some(stream) = self.streams.get_mut(&nth) {
            stream.ended.get_or_insert(self.ended);
        }
        self.forget();
    }

    /// Adds a message to a stream.
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

    fn request(key: &str) -> StreamRequest {
        StreamRequest {
            id: ("\"mine\"".to_owned(), key.to_owned()),
            token: Some(format!("\"t{key}")),
        }
    }

    /// The stream that has got a message, and true if that is its last.
    fn way(streams: &Streams, message: &str) -> (Option<u64>, bool) {
        let ends = || {
            let state = locked(&streams.state);
            let all = state.streams.iter();
            all.map(|(nth, one)| (*nth, one.next, one.ended.is_some()))
                .collect::<Vec<_>>()
        };
        let before = ends();
        assert!(streams.pass(message.as_bytes()), "a message");
        let changed = ends().into_iter().find(|one| !before.contains(one));
        (
            changed.map(|(nth, ..)| nth),
            changed.is_some_and(|(.., has_ended)| has_ended),
        )
    }

    #[test]
    fn messages_find_their_streams() {
        let streams = Streams::new();
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
        assert_eq!(way(&streams, log), (Some(OWN), false));
        let one = streams.open(request("1"), false).unwrap();
        assert!(streams.open(request("1"), false).is_none());
        let own = streams.listen().unwrap();
        assert_eq!(way(&streams, log), (Some(1), false));
        drop(one);
        assert_eq!(way(&streams, log), (Some(OWN), false));
        let _two = streams.open(request("2"), false).unwrap();
        let one = streams.resume("1-0").unwrap();
        assert_eq!(way(&streams, log), (Some(OWN), false));
        drop(own);
        let odd = r#"{"jsonrpc":"2.0","method":"x","method":"y"}"#;
        assert_eq!(way(&streams, odd), (Some(2), false));
        assert!(!streams.pass(b"[INFO] nonsense"));
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t1"}}"#;
        let _own = streams.listen().unwrap();
        assert_eq!(way(&streams, progress), (Some(1), false));
        let other = progress.replace("t1", "t3");
        assert_eq!(way(&streams, &other), (Some(OWN), false));
        drop(one);
        let answer = r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#;
        assert_eq!(way(&streams, answer), (Some(1), true));
        assert_eq!(way(&streams, answer), (None, false));
    }

    #[test]
    fn requests_that_are_never_answered_are_forgotten() {
        let streams = Streams::new();
        for nth in 1..=1026 {
            drop(streams.open(request(&nth.to_string()), false).unwrap());
        }
        let waiting: Vec<u64> = locked(&streams.state).open().map(|(nth, _)| nth).collect();
        assert_eq!((waiting.len(), waiting[0]), (1024, 3));
        streams.end_all(|id| format!("{{\"id\":{id}}}"));
        let mut last = streams.resume("1026-0").unwrap();
        assert!(last.next().now_or_never().unwrap().is_none(), "{waiting:?}");
    }

    #[test]
    fn a_message_of_too_many_values_finds_its_stream_too() {
        let streams = Streams::new();
        let _read = ["1", "2"].map(|key| streams.open(request(key), false));
        let _own = streams.listen();
        let values = "1,".repeat(1 << 20);
        let dense = |before: &str, after: &str| {
            let message = format!(r#"{{"jsonrpc":"2.0",{before}{{"a":[{values}1]}}{after}}}"#);
            way(&streams, &message)
        };
        assert_eq!(dense(r#""method":"x","params":"#, ""), (Some(OWN), false));
        assert_eq!(dense(r#""id":2,"result":"#, ""), (Some(2), true));
        assert_eq!(dense(r#""result":"#, r#","id":1"#), (Some(1), true));
        // Its outline lacks the id, so it goes where messages without a request go.
        let odd = dense(r#""error":null,"id":2,"result":"#, "");
        assert_eq!(odd, (Some(OWN), false));
        assert!(!streams.pass(values.as_bytes()));
    }

    #[test]
    fn a_stream_that_has_just_ended_can_be_resumed() {
        let streams = Streams::new();
        let mut reader = streams.open(request("1"), true).unwrap();
        let answer = |key: u64| format!(r#"{{"jsonrpc":"2.0","id":{key},"result":{{}}}}"#);
        for nth in 2..2 + MAX_ENDED as u64 {
            let mut reader = streams.open(request(&nth.to_string()), false).unwrap();
            assert!(streams.pass(answer(nth).as_bytes()));
            while reader.next().now_or_never().flatten().is_some() {}
        }
        assert!(streams.pass(br#"{"jsonrpc":"2.0","method":"x"}"#));
        while reader.next().now_or_never().flatten().is_some() {}
        drop(reader);
        assert!(streams.pass(answer(1).as_bytes()));
        assert!(streams.resume("1-0").is_some());
    }

    #[test]
    fn a_session_holds_little_that_its_client_has_not_read() {
        let message = [
            &br#"{"jsonrpc":"2.0","method":"x","params":{"#[..],
            &vec![b' '; 3 << 20],
            b"}}",
        ]
        .concat();
        let streams = Streams::new();
        let held = || locked(&streams.state).held;
        let mut reader = streams.listen().unwrap();
        assert!(reader.next().now_or_never().is_none(), "nothing is there");
        // As the owner does: it takes the server's next message once there is room.
        while streams.room().now_or_never().is_some() {
            assert!(streams.pass(&message));
        }
        assert!(held() > MAX_HELD && held() < MAX_HELD + message.len() + 100);
        // It goes on once its client reads.
        while reader.next().now_or_never().is_some() {}
        assert!(streams.room().now_or_never().is_some());
        while streams.room().now_or_never().is_some() {
            assert!(streams.pass(&message));
        }
        // Events that nobody reads are dropped.
        drop(reader);
        assert!(streams.room().now_or_never().is_some());
        assert!(held() <= MAX_HELD);
    }
}
