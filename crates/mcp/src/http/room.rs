//! The memory that messages take while they are held.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::gateway::message::Party;

/// Number of bytes of a message that take no room, and of a piece of those that do.
const PIECE: usize = 64 * 1024;

/// The room that one message takes of a room for several, whose permits are pieces.
#[derive(Debug)]
pub(crate) struct TakenRoom {
    of: Arc<Semaphore>,
    pieces: Vec<OwnedSemaphorePermit>,
}

impl TakenRoom {
    /// Takes room for a message that has grown to `length` bytes. Returns false if there is none.
    pub(crate) fn grow(&mut self, length: usize) -> bool {
        while length / PIECE > self.pieces.len() {
            let Ok(piece) = self.of.clone().try_acquire_owned() else {
                return false;
            };
            self.pieces.push(piece);
        }
        true
    }

    /// Gives the room back.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Returns true if the message takes no room.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// The reason for which a body was not read.
pub(crate) enum NotRead {
    /// It is over the maximum, or takes more memory than there is room for.
    TooLong,
    /// It broke off, or a client's trickles: otherwise, a few clients could hold all connections.
    BrokeOff,
}

/// Room for the messages that are held at the same time, so that a few clients can't fill the memory.
pub(crate) struct MessageRoom {
    /// Maximum length of one message, in bytes.
    max: usize,
    all: Arc<Semaphore>,
}

impl MessageRoom {
    /// Room for two messages of `max` bytes, and for many short ones.
    pub(crate) fn new(max: usize) -> Self {
        let pieces = (max / PIECE).saturating_mul(2).saturating_add(256);
        let all = Arc::new(Semaphore::new(pieces.min(Semaphore::MAX_PERMITS)));
        Self { max, all }
    }

    /// The room for a message without a byte.
    pub(crate) fn begin(&self) -> TakenRoom {
        TakenRoom {
            of: self.all.clone(),
            pieces: Vec::new(),
        }
    }

    /// Reads a body, which may not trickle if a client sends it. Returns it with the room that it takes.
    pub(crate) async fn read(
        &self,
        mut body: Incoming,
        sender: Party,
    ) -> Result<(Bytes, TakenRoom), NotRead> {
        let mut room = self.begin();
        // Frames may be a byte each, and cost more than that to keep.
        let mut whole = Vec::new();
        let mut end = Instant::now() + BODY;
        loop {
            let next = match sender {
                Party::Client => timeout_at(end, body.frame()).await,
                Party::Server => Ok(body.frame().await),
            };
            let Some(frame) = next.map_err(|_| NotRead::BrokeOff)? else {
                break;
            };
            let frame = frame.map_err(|_| NotRead::BrokeOff)?;
            if let Ok(data) = frame.into_data() {
                // Bytes that arrive at once earn no longer silence later.
                let earned = Duration::from_secs_f64(data.len() as f64 / LEAST_RATE);
                end = (end + earned).min(Instant::now() + BODY);
                whole.extend_from_slice(&data);
            }
            if whole.len() > self.max || !room.grow(whole.len()) {
                return Err(NotRead::TooLong);
            }
        }
        Ok((whole.into(), room))
    }
}

/// Time for a body, and the least number of bytes a second above which it may take longer.
const BODY: Duration = Duration::from_secs(60);
const LEAST_RATE: f64 = 4096.0;
