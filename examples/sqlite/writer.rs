//! Content that arrives in chunks.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use offcut::backend::range::within;
use offcut::backend::{BackendError, ErrorKind, Key, PutOutcome, Writer};
use tokio::runtime::Handle;

use crate::connection::Shared;
use crate::database::{self, PIECE};

/// Whole pieces are in the database, under an object without a key; the rest waits for more.
pub(crate) struct SqliteWriter {
    database: Shared,
    object: i64,
    /// Number of bytes in the database.
    written: u64,
    /// Less than a piece, or bytes that could not be written.
    rest: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A call failed or was dropped, so the amount in the database is unknown.
    Broken,
    /// The content is stored.
    Done,
}

impl SqliteWriter {
    pub(crate) fn new(database: Shared, object: i64) -> Self {
        Self {
            database,
            object,
            written: 0,
            rest: Vec::new(),
            state: State::Open,
        }
    }

    fn check(&self) -> Result<(), BackendError> {
        let why = match self.state {
            State::Open => return Ok(()),
            State::Broken => "a call of this writer failed or was dropped: open another writer",
            State::Done => "this writer's content is stored already: open another writer",
        };
        Err(BackendError::new(ErrorKind::Other, why))
    }

    /// Moves up to one piece from the rest to the database.
    async fn move_piece(&mut self) -> Result<(), BackendError> {
        let piece = Bytes::copy_from_slice(&self.rest[..self.rest.len().min(PIECE)]);
        let (object, at, length) = (self.object, self.written, piece.len());
        // Until the call is known to be done, since this future may be dropped.
        self.state = State::Broken;
        let append = move |database: &mut _| database::append(database, object, at, &piece);
        self.database.run(append).await?;
        self.rest.drain(..length);
        self.written += length as u64;
        self.state = State::Open;
        Ok(())
    }
}

#[async_trait]
impl Writer for SqliteWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        self.check()?;
        // Piece by piece, since a chunk may be far longer.
        for part in chunk.chunks(PIECE) {
            self.rest.extend_from_slice(part);
            while self.rest.len() >= PIECE {
                self.move_piece().await?;
            }
        }
        Ok(())
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        let total = self.written + self.rest.len() as u64;
        let Range { start, end } = within(&range, total);
        let (object, split) = (self.object, self.written);
        let mut bytes = Vec::new();
        if start < split {
            let range = start..end.min(split);
            bytes = self
                .database
                .run(move |database| database::content(database, object, range))
                .await?;
        }
        // Both are at most the length of the rest.
        let (from, to) = (start.saturating_sub(split), end.saturating_sub(split));
        bytes.extend_from_slice(&self.rest[from as usize..to as usize]);
        Ok(bytes.into())
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        self.check()?;
        if !self.rest.is_empty() {
            self.move_piece().await?;
        }
        let (object, bytes, key) = (self.object, self.written, key.clone());
        self.state = State::Broken;
        let name = move |database: &mut _| database::name(database, object, bytes, &key);
        let put = self.database.run(name).await?;
        self.state = if put == PutOutcome::Stored {
            State::Done
        } else {
            State::Open
        };
        Ok(put)
    }
}

/// Shows the number of bytes, never the content.
impl fmt::Debug for SqliteWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteWriter")
            .field("bytes", &(self.written + self.rest.len() as u64))
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Removes content that was not stored. If there is no runtime to do so, `tidy` does.
impl Drop for SqliteWriter {
    fn drop(&mut self) {
        let (database, object) = (self.database.clone(), self.object);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // An error can't be reported from here. An object that has a key by now stays.
                let _ = database
                    .run(move |database| database::abandon(database, object))
                    .await;
            });
        }
    }
}
