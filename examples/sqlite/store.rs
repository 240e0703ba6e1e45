//! The contract of a store, kept by a database.

use std::fmt;
use std::fs::OpenOptions;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};

use crate::connection::{Shared, failed};
use crate::database;
use crate::writer::SqliteWriter;

/// Stores content in an SQLite database, one file for all conversations.
///
/// # Guarantees
///
/// - Content is on disk before it is acknowledged (`synchronous = FULL`), and visible whole or not
///   at all, even after a crash.
/// - Several processes on one machine may use one file. A call waits for another's for at most ten
///   seconds, then fails with [`ErrorKind::Unavailable`].
/// - Memory for a stream does not grow with its length.
/// - Clones share a connection, and are one store.
#[derive(Clone)]
pub(crate) struct Sqlite {
    /// The start of every location.
    name: Arc<str>,
    database: Shared,
}

impl Sqlite {
    /// Opens the database at `path`. A missing file is created, readable for this user only.
    ///
    /// # Errors
    ///
    /// The file can't be opened, belongs to another program, or has a path that can't stand in a
    /// hint because it is not Unicode or has control characters.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self, BackendError> {
        let path = path.as_ref();
        private(path).map_err(|error| {
            let why =
                format!("{path:?} can't be opened: create its folder, or choose another file");
            BackendError::new(ErrorKind::Denied, why).with_source(error)
        })?;
        // The same file has the same name, whatever path leads to it.
        let path = path.canonicalize().map_err(|error| {
            BackendError::new(
                ErrorKind::Denied,
                format!("the path of {path:?} can't be resolved: choose another file"),
            )
            .with_source(error)
        })?;
        let shown = path
            .to_str()
            .filter(|path| !path.contains(char::is_control));
        let shown = shown.ok_or_else(|| {
            let why = format!("{path:?} can't be shown in a hint: choose a path in Unicode without control characters");
            BackendError::new(ErrorKind::Other, why)
        })?;
        let database = database::open(&path).map_err(failed)?;
        Ok(Self {
            name: format!("sqlite:{shown}").into(),
            database: Shared::new(database),
        })
    }
}

/// Creates the file for this user alone if it is missing. SQLite's other files inherit its mode.
fn private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Shows the location, never the content.
impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sqlite").field(&self.name).finish()
    }
}

#[async_trait]
impl Backend for Sqlite {
    fn locate(&self, key: &Key) -> Location {
        Location::new(format!("{}/{key}", self.name))
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        let key = location.strip_prefix(&*self.name)?.strip_prefix('/')?;
        Key::new(key).ok()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        let key = key.clone();
        self.database
            .run(move |database| database::put(database, &key, &content))
            .await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        let object = self
            .database
            .run(|database| database::begin(database))
            .await?;
        Ok(Box::new(SqliteWriter::new(self.database.clone(), object)))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let wanted = key.clone();
        let read = self
            .database
            .run(move |database| database::read(database, &wanted, &range));
        match read.await? {
            Some((bytes, stored)) => Ok(ReadRange {
                bytes: bytes.into(),
                total: stored.bytes,
                stored_at: stored.since,
            }),
            None => {
                let why = format!("nothing is stored as {}", self.locate(key));
                Err(BackendError::new(ErrorKind::NotFound, why))
            }
        }
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        let entry = |stored: database::Stored| {
            // Rows of another program are not ours to list.
            let key = Key::new(stored.key).ok()?;
            Some(Ok(Entry {
                key,
                bytes: stored.bytes,
                stored_at: stored.since,
            }))
        };
        stream::once(self.database.run(database::list))
            .flat_map(move |all| match all {
                Ok(all) => stream::iter(all.into_iter().filter_map(entry)).left_stream(),
                Err(error) => stream::iter([Err(error)]).right_stream(),
            })
            .boxed()
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        let key = key.clone();
        self.database
            .run(move |database| database::remove(database, &key, before))
            .await
    }

    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        self.database
            .run(move |database| database::tidy(database, before))
            .await
    }
}
