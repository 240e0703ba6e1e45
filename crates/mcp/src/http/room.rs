//! The memory that messages take while they are held.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

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
}

/// The reason for which a body was not read.
pub(crate) enum NotRead {
    /// It is over the maximum, or takes more memory than there is room for.
    TooLong,
    /// It broke off, or took too long.
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

    /// Reads a body. Returns it with the room that it takes.
    pub(crate) async fn read(&self, mut body: Incoming) -> Result<(Bytes, TakenRoom), NotRead> {
        let mut room = self.begin();
        // Frames may be a byte each, and cost more than that to keep.
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| NotRead::BrokeOff)?;
            whole.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            if whole.len() > self.max || !room.grow(whole.len()) {
                return Err(NotRead::TooLong);
            }
        }
        Ok((whole.into(), room))
    }

    /// Reads the body of a client, which may not trickle: otherwise, a few clients could hold all connections.
    pub(crate) async fn read_soon(&self, body: Incoming) -> Result<(Bytes, TakenRoom), NotRead> {
        let read = timeout(BODY, self.read(body)).await;
        read.unwrap_or(Err(NotRead::BrokeOff))
    }
}

/// Time for the body of a client.
const BODY: Duration = Duration::from_secs(300);
