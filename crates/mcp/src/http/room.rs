//! The memory that messages take while they are held.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of bytes of a message that take no room, and of a piece of those that do.
pub(crate) const PIECE: usize = 64 * 1024;

/// The room that one message takes of a room for several, whose permits are pieces.
#[derive(Debug)]
pub(crate) struct TakenRoom {
    of: Arc<Semaphore>,
    pieces: Vec<OwnedSemaphorePermit>,
}

impl TakenRoom {
    /// The room for a message without a byte.
    pub(crate) fn new(of: Arc<Semaphore>) -> Self {
        Self {
            of,
            pieces: Vec::new(),
        }
    }

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
