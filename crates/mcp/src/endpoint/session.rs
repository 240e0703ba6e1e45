//! One server over pipes, and the messages of its client: each of the server's is kept in the stream to which it
//! belongs until the client has read it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep};

use super::reply::{self, Refusal};
use crate::gateway::McpGateway;
use crate::gateway::lines::{Line, Lines};
use crate::gateway::message::{
    BYTE_ORDER_MARK, INTERNAL_ERROR, MAX_ID, Message, error_text, is_message, key, on_one_line,
    parse_or_outline,
};
use crate::http::room::TakenRoom;
use crate::locked::locked;
use crate::remote::meaning::Meaning;

/// Number of bytes between the endpoint and the gateway's pipes.
const PIPE: usize = 64 * 1024;
/// Number of bytes of events that are kept, of answers and of the server's own stream each.
const MAX_HELD: usize = 4 << 20;
/// Maximum number of requests that wait. Servers do not answer those that were cancelled.
const MAX_WAITING: usize = 1024;

/// Time for which a session stays open without a client, and the time between two looks for it.
const IDLE: Duration = Duration::from_secs(30 * 60);
const LOOK: Duration = Duration::from_secs(60);

/// An event as it is sent, and the room that it takes until a client reads it.
type HeldEvent = (Bytes, Option<OwnedSemaphorePermit>);
/// The events of a stream.
pub(super) type Events = UnboundedReceiver<HeldEvent>;

/// A server over pipes, for one client.
pub(super) struct Session {
    gateway: Arc<McpGateway>,
    to_server: tokio::sync::Mutex<DuplexStream>,
    /// True once the session ends: nobody waits any more until the server reads.
    is_over: watch::Sender<bool>,
    used: Mutex<Instant>,
    /// Requests, also those whose clients have gone, the oldest first.
    waiting: Mutex<VecDeque<WaitingRequest>>,
    /// The stream of messages that belong to no request. Who reads it holds the lock.
    own: UnboundedSender<HeldEvent>,
    own_events: Arc<tokio::sync::Mutex<Events>>,
    /// Room for the events of answers: the server waits for it.
    room: Arc<Semaphore>,
    /// Room for those of the server's own stream, which a client need not read.
    own_room: Arc<Semaphore>,
}

/// A request to the server, and the stream of its answer.
struct WaitingRequest {
    /// Its id as the client wrote it, and as a key.
    id: (String, String),
    events: UnboundedSender<HeldEvent>,
}

pub(super) const INVALID_REQUEST: i32 = -32600;
const ENDED: &str = "the server has ended";

impl Session {
    /// A session with the pipes of the side that a gateway takes for its client.
    pub(super) fn new(
        gateway: Arc<McpGateway>,
    ) -> (Arc<Self>, (DuplexStream, DuplexStream), DuplexStream) {
        let (to_server, from_client) = duplex(PIPE);
        let (to_client, from_server) = duplex(PIPE);
        let (own, own_events) = unbounded_channel();
        let session = Arc::new(Self {
            gateway,
            to_server: tokio::sync::Mutex::new(to_server),
            is_over: watch::Sender::new(false),
            used: Mutex::new(Instant::now()),
            waiting: Mutex::default(),
            own,
            own_events: Arc::new(tokio::sync::Mutex::new(own_events)),
            room: Arc::new(Semaphore::new(MAX_HELD)),
            own_room: Arc::new(Semaphore::new(MAX_HELD)),
        });
        (session, (from_client, to_client), from_server)
    }

    /// Passes the server's messages to the streams that they belong to, until there are no more.
    pub(super) async fn pass(&self, from_server: DuplexStream) {
        // Longer lines have been refused.
        let mut lines = Lines::new(from_server, usize::MAX);
        while let Ok(Some(Line::Whole(line))) = lines.next().await {
            if !line.trim_ascii().is_empty() && !self.pass_line(line).await {
                self.gateway.note_other(line);
            }
        }
    }

    /// Adds a line of the server to the stream that it belongs to, once there is room. Drops an answer for which nobody
    /// waits, and a message of the server's own stream without room. Returns false if it is not a message.
    async fn pass_line(&self, line: &[u8]) -> bool {
        let Some(json) = parse_or_outline(line).filter(is_message) else {
            return false;
        };
        let answered = match Message::read(&json) {
            Message::Response { id, .. } => Some(key(id)),
            _ => None,
        };
        drop(json);
        let to = {
            let mut waiting = locked(&self.waiting);
            match answered {
                Some(key) => {
                    let nth = waiting.iter().position(|one| one.id.1 == key);
                    let Some(one) = nth.and_then(|nth| waiting.remove(nth)) else {
                        return true;
                    };
                    Some(one.events)
                }
                // Most likely it belongs to the newest request.
                None => {
                    let mut read = waiting.iter().filter(|one| !one.events.is_closed());
                    read.next_back().map(|one| one.events.clone())
                }
            }
        };
        let event = event(line);
        let length = event.len().min(MAX_HELD) as u32;
        // Nobody may be there to receive it.
        _ = match to {
            Some(to) => {
                let room = self.room.clone().acquire_many_owned(length).await;
                to.send((event, room.ok()))
            }
            None => match self.own_room.clone().try_acquire_many_owned(length) {
                Ok(room) => self.own.send((event, Some(room))),
                Err(_) => Ok(()),
            },
        };
        true
    }

    /// Ends the session: the server's stdin is closed, and clients get no more.
    pub(super) async fn close(&self) {
        self.is_over.send_replace(true);
        _ = self.to_server.lock().await.shutdown().await;
    }

    /// Waits until the session ends.
    pub(super) async fn closed(&self) {
        _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
    }

    /// Notes that the server has ended, and answers those who wait.
    pub(super) async fn ended(&self) {
        for one in locked(&self.waiting).drain(..) {
            let error = error_text(INTERNAL_ERROR, ENDED, Some(&one.id.0));
            _ = one.events.send((event(error.as_bytes()), None));
        }
        self.close().await;
    }

    /// Returns true if the server gets no more messages.
    pub(super) fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    /// Notes that a client is there.
    pub(super) fn touch(&self) {
        *locked(&self.used) = Instant::now();
    }

    /// Waits until no client has been there for half an hour. One that reads a stream is.
    pub(super) async fn idle(&self) {
        while locked(&self.used).elapsed() < IDLE {
            sleep(LOOK).await;
            let reads = |one: &WaitingRequest| !one.events.is_closed();
            if self.own_events.try_lock().is_err() || locked(&self.waiting).iter().any(reads) {
                self.touch();
            }
        }
    }

    /// Sends a message to the server, which takes its `room` until then. Returns false if the session has ended.
    pub(super) async fn tell(self: &Arc<Self>, message: &[u8], room: TakenRoom) -> bool {
        let message = message.strip_prefix(BYTE_ORDER_MARK).unwrap_or(message);
        let mut line: Vec<u8> = on_one_line(message.trim_ascii()).collect();
        line.push(b'\n');
        let session = self.clone();
        // It is written to its end even if its client goes: the next message must not run into a part of it.
        let written = tokio::spawn(async move {
            let _room = room;
            tokio::select! {
                biased;
                () = session.closed() => false,
                written = async { session.to_server.lock().await.write_all(&line).await } => written.is_ok(),
            }
        });
        written.await.unwrap_or(false)
    }

    /// Sends a request to the server. Returns the stream of its answer.
    ///
    /// # Errors
    ///
    /// A request with the same id still waits, the id is too long, or the session has ended.
    pub(super) async fn ask(
        self: &Arc<Self>,
        message: &[u8],
        meaning: &Meaning,
        room: TakenRoom,
    ) -> Result<Events, Refusal> {
        let refused =
            |status, code, text| Box::new(reply::error(status, code, text, meaning.request_id()));
        let (sender, events) = unbounded_channel();
        let id = meaning.request().filter(|(id, _)| id.len() <= MAX_ID);
        if !id.is_some_and(|id| self.expect(id, sender)) {
            let text = "a request with the same id still waits, or the id has over 4 KiB";
            return Err(refused(StatusCode::BAD_REQUEST, INVALID_REQUEST, text));
        }
        if self.tell(message, room).await {
            Ok(events)
        } else {
            Err(refused(StatusCode::BAD_GATEWAY, INTERNAL_ERROR, ENDED))
        }
    }

    /// Expects the answer to a request. Returns false if one with this id still waits. If too many wait, the oldest is
    /// forgotten.
    fn expect(&self, id: &(String, String), events: UnboundedSender<HeldEvent>) -> bool {
        let mut waiting = locked(&self.waiting);
        if waiting.iter().any(|one| one.id.1 == id.1) {
            return false;
        }
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
        }
        let id = id.clone();
        waiting.push_back(WaitingRequest { id, events });
        true
    }

    /// Reads the server's own stream from its first event that nobody has read. `None` while another does.
    pub(super) fn listen(&self) -> Option<OwnedMutexGuard<Events>> {
        self.own_events.clone().try_lock_owned().ok()
    }
}

/// A message as it is sent.
fn event(message: &[u8]) -> Bytes {
    let mut event = b"data: ".to_vec();
    event.extend(on_one_line(message.trim_ascii_end()));
    event.extend_from_slice(b"\n\n");
    event.into()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::http::room::MessageRoom;

    const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;

    /// A session, and the pipes of its server.
    fn session() -> (Arc<Session>, impl Sized) {
        let (session, client, from_server) = Session::new(Arc::new(McpGateway::passing()));
        (session, (client, from_server))
    }

    async fn ask(session: &Arc<Session>, id: &str) -> Option<Events> {
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
        let meaning = Meaning::read(message.as_bytes());
        let room = MessageRoom::new(0).begin();
        session.ask(message.as_bytes(), &meaning, room).await.ok()
    }

    /// The places of those among `streams` that get a message.
    fn way(session: &Session, message: &str, streams: &mut [&mut Events]) -> Vec<usize> {
        let is_message = session.pass_line(message.as_bytes()).now_or_never();
        assert!(is_message.expect("there is room"), "a message");
        let all = streams.iter_mut().enumerate();
        let got = all.filter_map(|(nth, stream)| stream.try_recv().ok().map(|_| nth));
        got.collect()
    }

    #[tokio::test]
    async fn messages_find_their_streams() {
        let (session, _pipes) = session();
        assert!(way(&session, LOG, &mut []).is_empty());
        let mut one = ask(&session, "1").await.unwrap();
        assert!(ask(&session, "1.0").await.is_none());
        let mut own = session.listen().unwrap();
        assert!(session.listen().is_none(), "another reads it");
        assert!(own.try_recv().is_ok(), "it was kept");
        assert_eq!(way(&session, LOG, &mut [&mut own, &mut one]), [1]);
        let mut two = ask(&session, "2").await.unwrap();
        let mut all = [&mut *own, &mut one, &mut two];
        assert_eq!(way(&session, LOG, &mut all), [2]);
        let odd = r#"{"jsonrpc":"2.0","method":"x","method":"y"}"#;
        assert_eq!(way(&session, odd, &mut all), [2]);
        let nonsense = session.pass_line(b"[INFO] nonsense").now_or_never();
        assert_eq!(nonsense, Some(false));
        let answer = r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#;
        assert_eq!(way(&session, answer, &mut all), [1]);
        assert_eq!(
            one.recv().now_or_never().map(|end| end.is_none()),
            Some(true)
        );
        assert!(way(&session, answer, &mut [&mut own, &mut two]).is_empty());
        // The other's client goes away, and comes back to listen.
        drop(two);
        assert_eq!(way(&session, LOG, &mut [&mut own]), [0]);
        assert!(ask(&session, "2").await.is_none(), "it still waits");
        drop(own);
        assert!(way(&session, LOG, &mut []).is_empty());
        assert!(session.listen().unwrap().try_recv().is_ok());
    }

    #[tokio::test]
    async fn requests_that_are_never_answered_are_forgotten() {
        let (session, _pipes) = session();
        let mut all = Vec::new();
        for nth in 1..=MAX_WAITING + 2 {
            all.push(ask(&session, &nth.to_string()).await.unwrap());
        }
        session.ended().await;
        for (nth, events) in all.iter_mut().enumerate() {
            let error = events.recv().await;
            assert_eq!(error.is_some(), nth >= 2, "{nth}");
            assert!(events.recv().await.is_none());
        }
        assert!(ask(&session, "0").await.is_none());
    }

    #[tokio::test]
    async fn a_message_of_too_many_values_finds_its_stream_too() {
        let (session, _pipes) = session();
        let mut one = ask(&session, "1").await.unwrap();
        let mut two = ask(&session, "2").await.unwrap();
        let values = "1,".repeat(1 << 20);
        for id in ["\"id\":1,", ""] {
            let answer = format!(r#"{{"jsonrpc":"2.0",{id}"result":{{"a":[{values}1]}},"id":1}}"#);
            let expected = if id.is_empty() { vec![] } else { vec![0] };
            assert_eq!(way(&session, &answer, &mut [&mut one, &mut two]), expected);
        }
        let is_message = session.pass_line(values.as_bytes()).now_or_never();
        assert_eq!(is_message, Some(false));
    }

    #[tokio::test]
    async fn a_session_holds_little_that_its_client_has_not_read() {
        let message = |length: usize| {
            let text = " ".repeat(length);
            format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{{text}}}}}"#)
        };
        let (session, _pipes) = session();
        let passed = |message: &str| {
            session
                .pass_line(message.as_bytes())
                .now_or_never()
                .is_some()
        };
        let held = |room: &Semaphore| MAX_HELD - room.available_permits();
        let long = message(3 << 20);
        let size = long.len() + "data: \n\n".len();
        let mut answer = ask(&session, "1").await.unwrap();
        // As the owner does: it takes the server's next message once there is room.
        assert!(passed(&long) && !passed(&long));
        assert_eq!(held(&session.room), size);
        // It goes on once its client reads, or has gone.
        assert!(answer.try_recv().is_ok());
        assert_eq!(held(&session.room), 0);
        assert!(passed(&long));
        drop(answer);
        assert_eq!(held(&session.room), 0);
        // Messages over the room alone pass one at a time.
        let answer = ask(&session, "2").await.unwrap();
        assert!(passed(&message(5 << 20)) && !passed(LOG));
        assert_eq!(held(&session.room), MAX_HELD);
        drop(answer);

        // Messages of the server's own that find no room are dropped.
        assert!(passed(&long) && passed(&long));
        assert_eq!(held(&session.own_room), size);
        let mut own = session.listen().unwrap();
        assert!(own.try_recv().is_ok() && own.try_recv().is_err());
        assert_eq!(held(&session.own_room), 0);
    }
}
