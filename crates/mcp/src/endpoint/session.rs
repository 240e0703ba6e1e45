//! One server over pipes, and the messages of its clients.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::Instant;

use super::streams::{Reader, StreamRequest, Streams};
use crate::gateway::McpGateway;
use crate::gateway::lines::{Line, Lines};
use crate::gateway::message::{BYTE_ORDER_MARK, INTERNAL_ERROR, MAX_ID, error_text, on_one_line};
use crate::locked::locked;
use crate::remote::meaning::Meaning;

/// Number of bytes between the endpoint and the gateway's pipes.
const PIPE: usize = 64 * 1024;

/// A server over pipes, for one client.
pub(super) struct Session {
    pub(super) streams: Arc<Streams>,
    to_server: tokio::sync::Mutex<Pipe>,
    /// True once the session ends: nobody waits any more until the server reads.
    is_over: watch::Sender<bool>,
    gateway: Arc<McpGateway>,
    used: Mutex<Instant>,
}

/// The pipe to a server.
struct Pipe {
    pipe: DuplexStream,
    /// True if a message was not written to its end, since its client has gone.
    is_cut: bool,
}

/// The reason for which the server did not get a request: a status, JSON-RPC's code and a text.
type NotAsked = (StatusCode, i32, &'static str);
pub(super) const INVALID_REQUEST: i32 = -32600;
const ENDED: &str = "the server has ended";
const NO_SERVER: NotAsked = (StatusCode::BAD_GATEWAY, INTERNAL_ERROR, ENDED);
const NO_NEW_REQUEST: NotAsked = (
    StatusCode::BAD_REQUEST,
    INVALID_REQUEST,
    "a request with the same id still waits for its answer, or the id has over 4 KiB",
);

impl Session {
    /// A session with the pipes of the side that a gateway takes for its client.
    pub(super) fn new(
        gateway: Arc<McpGateway>,
    ) -> (Arc<Self>, (DuplexStream, DuplexStream), DuplexStream) {
        let (to_server, from_client) = duplex(PIPE);
        let (to_client, from_server) = duplex(PIPE);
        let session = Arc::new(Self {
            streams: Streams::new(),
            to_server: tokio::sync::Mutex::new(Pipe {
                pipe: to_server,
                is_cut: false,
            }),
            is_over: watch::Sender::new(false),
            gateway,
            used: Mutex::new(Instant::now()),
        });
        (session, (from_client, to_client), from_server)
    }

    /// Passes the server's messages to the streams that they belong to, until there are no more.
    pub(super) async fn pass(&self, from_server: DuplexStream) {
        // Longer lines have been refused.
        let mut lines = Lines::new(from_server, usize::MAX);
        while let Ok(Some(Line::Whole(line))) = lines.next().await {
            if !line.trim_ascii().is_empty() && !self.streams.pass(line).await {
                self.gateway.note_other(line);
            }
        }
    }

    /// Ends the session: the server's stdin is closed, and clients get no more.
    pub(super) async fn close(&self) {
        self.is_over.send_replace(true);
        _ = self.to_server.lock().await.pipe.shutdown().await;
    }

    /// Waits until the session ends.
    pub(super) async fn closed(&self) {
        _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
    }

    /// Notes that the server has ended, and answers those who wait.
    pub(super) async fn ended(&self) {
        self.close().await;
        self.streams
            .end_all(|id| error_text(INTERNAL_ERROR, ENDED, Some(id)));
    }

    /// Returns true if the server gets no more messages.
    pub(super) fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    /// Notes that a client is there.
    pub(super) fn touch(&self) {
        *locked(&self.used) = Instant::now();
    }

    /// The time since which no client was there. `None` while one reads a stream.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (!self.streams.is_any_read()).then(|| *locked(&self.used))
    }

    /// Sends a message to the server. Returns false if it has ended.
    pub(super) async fn tell(&self, message: &[u8]) -> bool {
        let message = message.strip_prefix(BYTE_ORDER_MARK).unwrap_or(message);
        let mut line: Vec<u8> = on_one_line(message.trim_ascii()).collect();
        line.push(b'\n');
        let written = async {
            let Pipe { pipe, is_cut } = &mut *self.to_server.lock().await;
            // A message that broke off is not JSON, and must not run into the next.
            if std::mem::replace(is_cut, true) && pipe.write_all(b"\n").await.is_err() {
                return false;
            }
            let is_written = pipe.write_all(&line).await.is_ok();
            *is_cut = false;
            is_written
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
    pub(super) async fn ask(&self, message: &[u8], meaning: &Meaning) -> Result<Reader, NotAsked> {
        let id = meaning.request().filter(|(id, _)| id.len() <= MAX_ID);
        let request = StreamRequest {
            id: id.cloned().ok_or(NO_NEW_REQUEST)?,
            token: meaning.token.clone(),
        };
        let reader = self.streams.open(request).ok_or(NO_NEW_REQUEST)?;
        if self.tell(message).await {
            Ok(reader)
        } else {
            Err(NO_SERVER)
        }
    }
}
