//! A connection shared by several calls.

use std::sync::{Arc, Mutex, PoisonError};

use offcut::backend::{BackendError, ErrorKind};
use rusqlite::{Connection, ErrorCode};
use tokio::task::spawn_blocking;

/// A connection; clones share it.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Connection>>);

impl Shared {
    pub(crate) fn new(database: Connection) -> Self {
        Self(Arc::new(Mutex::new(database)))
    }

    /// Runs a step on a thread that may block. If this future is dropped, the step still runs to
    /// its end or never starts.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BackendError> {
        let database = Arc::clone(&self.0);
        // A panic while the lock was held has rolled its transaction back.
        let done = spawn_blocking(move || {
            step(&mut database.lock().unwrap_or_else(PoisonError::into_inner))
        });
        let done = done.await.map_err(|error| {
            BackendError::new(
                ErrorKind::Other,
                "the database's thread ended early: try again",
            )
            .with_source(error)
        })?;
        done.map_err(failed)
    }
}

/// SQLite's messages name tables and codes, never content.
pub(crate) fn failed(error: rusqlite::Error) -> BackendError {
    let (kind, what) = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (ErrorKind::Full, "the disk is full: make room"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Unavailable,
            "the database is busy: try again later",
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => (
            ErrorKind::Denied,
            "the database can't be written to: check the permissions of its file and folder",
        ),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::Other,
            "the file is not an SQLite database: choose another file",
        ),
        _ => (
            ErrorKind::Other,
            "the database failed: check its file and disk",
        ),
    };
    BackendError::new(kind, what).with_source(error)
}
