//! The streams of events of one session: messages of the server, each in the stream of the request to which it belongs,
//! kept until a client has read them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use offcut::json::View;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::gateway::message::{
    Message, is_message, key, may_be_dense, on_one_line, parse_or_outline,
};
use crate::locked::locked;

/// Number of bytes of events that are kept, of answers and of the server's own stream each.
const MAX_HELD: usize = 4 << 20;
/// Maximum number of requests that wait. Servers do not answer those that were cancelled.
const MAX_WAITING: usize = 1024;
/// Time for whoever reads the server's own stream to read, before a message that finds no room is dropped.
const PATIENCE: Duration = Duration::from_secs(30);

/// An event as it is sent, and the room that it takes until a client reads it.
type HeldEvent = (Bytes, Option<OwnedSemaphorePermit>);

/// All streams of a session.
#[derive(Debug)]
pub(super) struct Streams {
    state: Mutex<State>,
    /// Room for the events of answers: the server waits for it.
    room: Arc<Semaphore>,
    /// Room for those of the server's own stream, which a client need not read.
    own_room: Arc<Semaphore>,
}

#[derive(Debug)]
struct State {
    /// Requests, also those whose clients have gone, and the streams of their answers, the oldest first.
    waiting: VecDeque<(StreamRequest, UnboundedSender<HeldEvent>)>,
    /// The stream of messages that belong to no request. `None` once the server has ended.
    own: Option<UnboundedSender<HeldEvent>>,
    /// The end of it that nobody reads.
    unread: Option<UnboundedReceiver<HeldEvent>>,
}

/// A request to the server.
#[derive(Debug)]
pub(super) struct StreamRequest {
    /// Its id as the client wrote it, and as a key.
    pub(super) id: (String, String),
    /// Its progress token as a key.
    pub(super) token: Option<String>,
}

impl Streams {
    /// The server's own stream, and none for an answer.
    pub(super) fn new() -> Arc<Self> {
        let (own, unread) = unbounded_channel();
        let state = State {
            waiting: VecDeque::new(),
            own: Some(own),
            unread: Some(unread),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            room: Arc::new(Semaphore::new(MAX_HELD)),
            own_room: Arc::new(Semaphore::new(MAX_HELD)),
        })
    }

    /// Opens the stream of a request's answer. `None` if another request with the same id still waits. If too many
    /// wait, the oldest is forgotten.
    pub(super) fn open(&self, request: StreamRequest) -> Option<Reader> {
        let mut state = locked(&self.state);
        if state.position(|one| one.id.1 == request.id.1).is_some() {
            return None;
        }
        if state.waiting.len() >= MAX_WAITING {
            state.waiting.pop_front();
        }
        let (sender, events) = unbounded_channel();
        state.waiting.push_back((request, sender));
        Some(Reader { events, own: None })
    }

    /// Adds a line of the server to the stream that it belongs to, once there is room, and drops an answer for which
    /// nobody waits. Returns false if it is not a message.
    pub(super) async fn pass(&self, line: &[u8]) -> bool {
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
        let (to, patience) = {
            let mut state = locked(&self.state);
            if let Some(key) = answered {
                let nth = state.position(|one| one.id.1 == key);
                let answered = nth.and_then(|nth| state.waiting.remove(nth));
                (answered.map(|(_, to)| to), None)
            } else {
                let of_token = state.position(|one| token.is_some() && one.token == token);
                match of_token.or_else(|| state.any()) {
                    Some(nth) => (Some(state.waiting[nth].1.clone()), None),
                    None if state.unread.is_none() => (state.own.clone(), Some(PATIENCE)),
                    None => (state.own.clone(), Some(Duration::ZERO)),
                }
            }
        };
        let Some(to) = to else { return true };
        let event = event(line);
        let length = event.len().min(MAX_HELD) as u32;
        let room = match patience {
            None => self.room.clone().acquire_many_owned(length).await.ok(),
            Some(patience) => {
                let room = self.own_room.clone().acquire_many_owned(length);
                timeout(patience, room).await.ok().and_then(Result::ok)
            }
        };
        if room.is_some() {
            // Its client may have gone.
            _ = to.send((event, room));
        }
        true
    }

    /// Ends all streams, those of requests that wait with what `error` makes of their ids.
    pub(super) fn end_all(&self, error: impl Fn(&str) -> String) {
        let mut state = locked(&self.state);
        state.own = None;
        for (request, to) in state.waiting.drain(..) {
            _ = to.send((event(error(&request.id.0).as_bytes()), None));
        }
    }

    /// Returns true if somebody reads one of the streams.
    pub(super) fn is_any_read(&self) -> bool {
        let state = locked(&self.state);
        state.unread.is_none() || state.waiting.iter().any(|(_, to)| !to.is_closed())
    }

    /// Reads the server's own stream from its first event that nobody has read. `None` while another does.
    pub(super) fn listen(self: &Arc<Self>) -> Option<Reader> {
        let events = locked(&self.state).unread.take()?;
        let own = Some(self.clone());
        Some(Reader { events, own })
    }
}

impl State {
    /// The place of the oldest request that `is_meant`.
    fn position(&self, is_meant: impl Fn(&StreamRequest) -> bool) -> Option<usize> {
        self.waiting.iter().position(|(one, _)| is_meant(one))
    }

    /// The place of the request whose stream gets a message that names none: the only request there is, else the
    /// newest. `None` for the server's own stream, which comes between them if it is read.
    fn any(&self) -> Option<usize> {
        let all = self.waiting.iter().enumerate();
        let read = all.filter(|(_, (_, to))| !to.is_closed());
        let read: Vec<usize> = read.map(|(nth, _)| nth).collect();
        match read[..] {
            [only] => Some(only),
            _ if self.unread.is_none() => None,
            _ => read.last().copied(),
        }
    }
}

/// A message as it is sent.
fn event(message: &[u8]) -> Bytes {
    let mut event = b"data: ".to_vec();
    event.extend(on_one_line(message.trim_ascii_end()));
    event.extend_from_slice(b"\n\n");
    event.into()
}

/// Reads one stream. When that of the server's own is dropped, another may take it up.
#[derive(Debug)]
pub(super) struct Reader {
    events: UnboundedReceiver<HeldEvent>,
    /// The streams whose own it reads.
    own: Option<Arc<Streams>>,
}

impl Reader {
    /// The next event as it is sent; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let (event, _) = self.events.recv().await?;
        Some(event)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(streams) = &self.own {
            let events = std::mem::replace(&mut self.events, unbounded_channel().1);
            locked(&streams.state).unread = Some(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;

    fn request(key: &str) -> StreamRequest {
        StreamRequest {
            id: ("\"mine\"".to_owned(), key.to_owned()),
            token: Some(format!("\"t{key}")),
        }
    }

    /// The event that a stream has; `Some(None)` if it has ended.
    fn event_of(reader: &mut Reader) -> Option<Option<Bytes>> {
        reader.next().now_or_never()
    }

    /// The places of those among `readers` that get a message.
    fn way(streams: &Streams, message: &str, readers: &mut [&mut Reader]) -> Vec<usize> {
        let is_message = streams.pass(message.as_bytes()).now_or_never();
        assert!(is_message.expect("there is room"), "a message");
        let all = readers.iter_mut().enumerate();
        let got = all.filter_map(|(nth, reader)| event_of(reader).map(|_| nth));
        got.collect()
    }

    #[tokio::test]
    async fn messages_find_their_streams() {
        let streams = Streams::new();
        assert!(way(&streams, LOG, &mut []).is_empty());
        let mut one = streams.open(request("1")).unwrap();
        assert!(streams.open(request("1")).is_none());
        let mut own = streams.listen().unwrap();
        assert!(streams.listen().is_none(), "another reads it");
        assert!(event_of(&mut own).is_some(), "it was kept");
        assert_eq!(way(&streams, LOG, &mut [&mut own, &mut one]), [1]);
        let mut two = streams.open(request("2")).unwrap();
        assert_eq!(way(&streams, LOG, &mut [&mut own, &mut one, &mut two]), [0]);
        drop(own);
        let odd = r#"{"jsonrpc":"2.0","method":"x","method":"y"}"#;
        assert_eq!(way(&streams, odd, &mut [&mut one, &mut two]), [1]);
        assert_eq!(streams.pass(b"[INFO] nonsense").now_or_never(), Some(false));
        let mut own = streams.listen().unwrap();
        assert!(event_of(&mut own).is_none());
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t1"}}"#;
        let mut all = [&mut own, &mut one, &mut two];
        assert_eq!(way(&streams, progress, &mut all), [1]);
        let other = progress.replace("t1", "t3");
        assert_eq!(way(&streams, &other, &mut all), [0]);
        let answer = r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#;
        assert_eq!(way(&streams, answer, &mut all), [1]);
        assert_eq!(event_of(&mut one), Some(None), "it has ended");
        assert!(way(&streams, answer, &mut [&mut own, &mut two]).is_empty());
        // The other's client goes away, so nobody gets its messages.
        drop(two);
        let progress = progress.replace("t1", "t2");
        assert!(way(&streams, &progress, &mut [&mut own]).is_empty());
        assert!(streams.open(request("2")).is_none(), "it still waits");
    }

    #[test]
    fn requests_that_are_never_answered_are_forgotten() {
        let streams = Streams::new();
        let open = |nth: usize| streams.open(request(&nth.to_string())).unwrap();
        let mut all: Vec<Reader> = (1..=1026).map(open).collect();
        streams.end_all(|id| format!("{{\"id\":{id}}}"));
        for (nth, reader) in all.iter_mut().enumerate() {
            let error = event_of(reader).expect("it has ended");
            let expected = &b"data: {\"id\":\"mine\"}\n\n"[..];
            assert_eq!(error.as_deref(), (nth >= 2).then_some(expected), "{nth}");
            assert!(nth < 2 || event_of(reader) == Some(None));
        }
    }

    #[tokio::test]
    async fn a_message_of_too_many_values_finds_its_stream_too() {
        let streams = Streams::new();
        let [mut one, mut two] = ["1", "2"].map(|key| streams.open(request(key)).unwrap());
        let mut own = streams.listen().unwrap();
        let values = "1,".repeat(1 << 20);
        let mut dense = |before: &str, after: &str| {
            let message = format!(r#"{{"jsonrpc":"2.0",{before}{{"a":[{values}1]}}{after}}}"#);
            way(&streams, &message, &mut [&mut own, &mut one, &mut two])
        };
        assert_eq!(dense(r#""method":"x","params":"#, ""), [0]);
        // Its outline lacks the id, so it goes where messages without a request go.
        assert_eq!(dense(r#""error":null,"id":2,"result":"#, ""), [0]);
        assert_eq!(dense(r#""result":"#, r#","id":1"#), [1]);
        let message = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"a":[{values}1]}}}}"#);
        assert_eq!(way(&streams, &message, &mut [&mut own, &mut two]), [1]);
        let is_message = streams.pass(values.as_bytes()).now_or_never();
        assert_eq!(is_message, Some(false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_holds_little_that_its_client_has_not_read() {
        let message = |id: &str| {
            let text = " ".repeat(3 << 20);
            format!(r#"{{"jsonrpc":"2.0",{id}"method":"x","params":{{{text}}}}}"#)
        };
        let streams = Streams::new();
        let passed = |message: String| {
            let passed = streams.pass(message.as_bytes()).now_or_never();
            passed.is_some()
        };
        let held = |room: &Semaphore| MAX_HELD - room.available_permits();
        let size = message("").len() + "data: \n\n".len();
        let mut answer = streams.open(request("1")).unwrap();
        // As the owner does: it takes the server's next message once there is room.
        assert!(passed(message("")) && !passed(message("")));
        assert_eq!(held(&streams.room), size);
        // It goes on once its client reads, or has gone.
        assert!(event_of(&mut answer).is_some());
        assert_eq!(held(&streams.room), 0);
        assert!(passed(message("")));
        drop(answer);
        assert_eq!(held(&streams.room), 0);
        // Messages over the room alone pass one at a time.
        let mut answer = streams.open(request("2")).unwrap();
        let long = message("").replace("params", &"x".repeat(2 << 20));
        assert!(passed(long) && !passed(LOG.to_owned()));
        assert_eq!(held(&streams.room), MAX_HELD);
        assert!(event_of(&mut answer).is_some());
        drop(answer);

        // Messages that nobody reads are dropped.
        assert!(passed(message("")) && passed(message("")));
        assert_eq!(held(&streams.own_room), size);
        let mut own = streams.listen().unwrap();
        // Whoever reads has some time.
        assert!(!passed(message("")));
        let next = message("");
        let (next, _) = tokio::join!(own.next(), streams.pass(next.as_bytes()));
        assert!(next.is_some() && event_of(&mut own).is_some());
        assert!(event_of(&mut own).is_none());
        assert!(passed(message("")));
        streams.pass(message("").as_bytes()).await;
        assert_eq!(held(&streams.own_room), size);
        drop(own);
        assert_eq!(held(&streams.own_room), size);
        assert!(event_of(&mut streams.listen().unwrap()).is_some());
        assert_eq!(held(&streams.own_room), 0);
    }
}
