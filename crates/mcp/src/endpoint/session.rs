//! One server over pipes, and the messages of its clients.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt;
use offcut::json::{Node, View};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::reply::{Body, error_text};
use super::routes::{Routes, UNREAD, WaitingRequest};
use super::streams::{Part, Reader, Streams};
use crate::gateway::McpGateway;
use crate::gateway::lines::{Lines, Piece};
use crate::gateway::message::{MAX_ID, Message, key, on_one_line, parse};
use crate::remote::failure::INTERNAL_ERROR;

const ENDED: &str = "the server has ended";
/// Number of bytes between the endpoint and the gateway's pipes.
const PIPE: usize = 64 * 1024;
/// Time for which a message over the maximum may pause. Others wait until it is over, since nothing may come
/// between its parts.
const PAUSE: Duration = Duration::from_secs(30);

/// A server over pipes, for one client.
pub(super) struct Session {
    streams: Arc<Streams>,
    routes: Routes,
    /// `None` once the session has ended.
    to_server: tokio::sync::Mutex<Option<Pipe>>,
    /// True once the session ends: nobody waits any more until the server reads.
    is_over: watch::Sender<bool>,
    gateway: Arc<McpGateway>,
    /// Number of requests that were too long to be read.
    unread: AtomicU64,
    used: Mutex<Instant>,
}

/// The pipe to a server.
struct Pipe {
    pipe: DuplexStream,
    /// True if a message was not written to its end, since its client has gone.
    is_cut: bool,
}

impl Pipe {
    /// Writes a piece of a message, of which a line feed is the last.
    async fn write(&mut self, piece: &[u8], is_first: bool) -> bool {
        // A message that broke off is not JSON, and must not run into the next.
        if is_first && self.is_cut && self.pipe.write_all(b"\n").await.is_err() {
            return false;
        }
        self.is_cut = true;
        let is_written = self.pipe.write_all(piece).await.is_ok();
        self.is_cut = !piece.ends_with(b"\n");
        is_written
    }
}

/// The reason for which the server did not get a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotAsked {
    /// It is not a request, its id is too long, or one with the same id still waits.
    Invalid,
    /// The server has ended.
    Ended,
}

impl NotAsked {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Invalid => {
                "a request with the same id still waits for its answer, or the id has over 4 KiB"
            }
            Self::Ended => ENDED,
        }
    }
}

impl Session {
    /// A session with the pipes of the side that a gateway takes for its client. What it holds counts in `held`.
    pub(super) fn new(
        gateway: Arc<McpGateway>,
        held: Arc<AtomicUsize>,
    ) -> (Arc<Self>, (DuplexStream, DuplexStream), DuplexStream) {
        let (to_server, from_client) = duplex(PIPE);
        let (to_client, from_server) = duplex(PIPE);
        let session = Arc::new(Self {
            streams: Arc::new(Streams::new(gateway.max_message, held)),
            routes: Routes::default(),
            to_server: tokio::sync::Mutex::new(Some(Pipe {
                pipe: to_server,
                is_cut: false,
            })),
            is_over: watch::Sender::new(false),
            gateway,
            unread: AtomicU64::new(0),
            used: Mutex::new(Instant::now()),
        });
        (session, (from_client, to_client), from_server)
    }

    /// Passes the server's messages to the streams that they belong to, until there are no more.
    pub(super) async fn pass(&self, from_server: DuplexStream) {
        let mut lines = Lines::new(from_server, self.gateway.max_message);
        // The stream of a long message, and the answer that it is.
        let mut long = (None, false);
        while let Ok(Some(piece)) = lines.next().await {
            let is_read = |stream| self.streams.is_read(stream);
            match piece {
                Piece::Line(line) if line.trim_ascii().is_empty() => {}
                Piece::Line(line) => {
                    let Some(route) = self.routes.of(line, is_read) else {
                        self.gateway.note_other(line);
                        continue;
                    };
                    let Some(stream) = route.stream else { continue };
                    self.streams.put(stream, whole(line));
                    if route.is_answer {
                        self.streams.end(stream);
                    }
                }
                Piece::Part {
                    bytes,
                    is_first,
                    is_last,
                } => {
                    if is_first && may_be_message(bytes) {
                        long = self.routes.of_long(bytes, is_read);
                    } else if is_first {
                        long = (None, false);
                        self.gateway.note_other(bytes);
                    }
                    let part = Part {
                        bytes,
                        is_first,
                        is_last,
                    };
                    if let Some(stream) = long.0 {
                        self.streams.put(stream, part);
                    }
                    if let (Some(stream), (true, true)) = (long.0, (is_last, long.1)) {
                        self.streams.end(stream);
                    }
                }
            }
            self.streams.room().await;
        }
    }

    /// Ends the session: the server's stdin is closed, and clients get no more.
    pub(super) async fn close(&self) {
        self.is_over.send_replace(true);
        drop(self.to_server.lock().await.take());
    }

    /// Waits until the session ends.
    pub(super) async fn closed(&self) {
        _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
    }

    /// Notes that the server has ended, and answers those who wait.
    pub(super) async fn ended(&self) {
        self.close().await;
        for waiting in self.routes.take_all() {
            let text = error_text(INTERNAL_ERROR, ENDED, Some(&waiting.id));
            self.streams.put(waiting.stream, whole(text.as_bytes()));
        }
        self.streams.end_all();
    }

    /// Returns true if the server gets no more messages.
    pub(super) fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a client is there.
    pub(super) fn touch(&self) {
        *self.used() = Instant::now();
    }

    /// The time since which no client was there. `None` while one reads a stream.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (!self.streams.is_any_read()).then(|| *self.used())
    }

    /// Sends a message to the server. Returns false if it has ended.
    pub(super) async fn tell(&self, message: &[u8]) -> bool {
        let mut line: Vec<u8> = on_one_line(message.trim_ascii()).collect();
        line.push(b'\n');
        self.write(async |pipe| pipe.write(&line, true).await).await
    }

    /// Sends a message to the server as its parts come, unread. Returns false if it has ended, or the
    /// message has not come whole.
    pub(super) async fn tell_long(&self, mut body: Body) -> bool {
        self.write(async |pipe| {
            let mut is_first = true;
            while let Ok(Some(frame)) = timeout(PAUSE, body.frame()).await {
                let Ok(frame) = frame else { break };
                let bytes = frame.into_data().unwrap_or_default();
                let bytes: Vec<u8> = on_one_line(&bytes).collect();
                if !pipe.write(&bytes, std::mem::take(&mut is_first)).await {
                    return false;
                }
            }
            pipe.write(b"\n", is_first).await
        })
        .await
    }

    /// Writes to the server, unless it ends. Returns false if it has not got all.
    async fn write(&self, write: impl AsyncFnOnce(&mut Pipe) -> bool) -> bool {
        let written = async {
            match self.to_server.lock().await.as_mut() {
                Some(pipe) => write(pipe).await,
                None => false,
            }
        };
        tokio::select! {
            biased;
            () = self.closed() => false,
            is_written = written => is_written,
        }
    }

    /// Sends a request to the server. Returns the stream of its answer.
    ///
    /// # Errors
    ///
    /// A request with the same id still waits, the id is too long, or the server has ended.
    pub(super) async fn ask(&self, message: &[u8], may_resume: bool) -> Result<Reader, NotAsked> {
        let json = parse(message).ok_or(NotAsked::Invalid)?;
        let is_short = |node: &Node<'_>| node.range().len() <= MAX_ID;
        let Message::Request { id, params, .. } = Message::read(&json) else {
            return Err(NotAsked::Invalid);
        };
        let id = Some(id).filter(is_short).ok_or(NotAsked::Invalid)?;
        let meta = params.and_then(|params| params.get("_meta"));
        let token = meta.and_then(|meta| meta.get("progressToken"));
        let token = token.filter(is_short);
        let stream = self.streams.open(may_resume).ok_or(NotAsked::Ended)?;
        let waiting = WaitingRequest {
            stream,
            id: id.json().to_string(),
            token: token.map(key),
        };
        let reader = self.streams.read(stream).ok_or(NotAsked::Ended)?;
        let added = self.routes.add(key(id), waiting);
        let over = added.map_or(Some(stream), |forgotten| forgotten);
        if let Some(over) = over {
            self.streams.end(over);
        }
        added.map_err(|()| NotAsked::Invalid)?;
        if self.tell(json.as_str().as_bytes()).await {
            Ok(reader)
        } else {
            Err(NotAsked::Ended)
        }
    }

    /// Opens the stream of an answer to a message that is too long to be read.
    pub(super) fn ask_long(&self) -> Option<Reader> {
        let stream = self.streams.open(false)?;
        let nth = self.unread.fetch_add(1, Ordering::Relaxed);
        let waiting = WaitingRequest {
            stream,
            id: "null".to_owned(),
            token: None,
        };
        let forgotten = self.routes.add(format!("{UNREAD}{nth}"), waiting).ok()?;
        if let Some(forgotten) = forgotten {
            self.streams.end(forgotten);
        }
        self.streams.read(stream)
    }

    /// Reads the server's own stream, or one that has broken off.
    pub(super) fn listen(&self, after: Option<&str>) -> Option<Reader> {
        match after {
            Some(id) => self.streams.resume(id),
            None => self.streams.read(super::streams::OWN),
        }
    }
}

/// Returns true if this may be the beginning of a message that is too long to be read.
fn may_be_message(beginning: &[u8]) -> bool {
    let names = [r#""jsonrpc""#, r#""result""#];
    let mut found = names
        .iter()
        .filter_map(|name| memchr::memmem::find(beginning, name.as_bytes()));
    beginning.trim_ascii_start().starts_with(b"{") && found.next().is_some()
}

fn whole(bytes: &[u8]) -> Part<'_> {
    Part {
        bytes,
        is_first: true,
        is_last: true,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::{StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::{BodyExt as _, StreamBody};
    use offcut::ToolReduction;
    use offcut::backend::Memory;
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_message_that_pauses_does_not_keep_others_waiting() {
        let reduction = ToolReduction::recommended(Memory::new()).build().unwrap();
        let gateway = Arc::new(McpGateway::new(reduction));
        let (session, (server, _to_client), _) = Session::new(gateway, Arc::default());
        let first = stream::iter([Ok(Frame::data(Bytes::from("{\"a")))]);
        let body = StreamBody::new(first.chain(stream::pending())).boxed_unsync();
        let (is_told, _) = tokio::join!(session.tell_long(body), session.tell(b"{}"));
        assert!(is_told);
        let mut lines = BufReader::new(server).lines();
        let mut next = async || lines.next_line().await.unwrap().unwrap();
        assert_eq!((next().await, next().await), ("{\"a".into(), "{}".into()));
    }
}
