//! Where content is stored: the contract that every store keeps.

mod key;

#[cfg(feature = "fs")]
mod fs;
mod memory;
mod range;
mod url;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

#[cfg(feature = "fs")]
pub use fs::Fs;
pub(crate) use key::{DIGEST, digest, hex, is_safe_segment};
pub use key::{Key, KeyError};
pub use memory::Memory;
pub(crate) use range::{indexes_within, within};
pub use url::{StoreUrl, open};

/// A store for what leaves a conversation.
///
/// [`Fs`] and [`Memory`] are ready. To write one, keep the contract below and run
/// `backend::conformance` of the crate `offcut-testkit` over it in your tests.
///
/// # Contract
///
/// - **Create-only.** What is stored under a key never changes. [`put`](Self::put) and
///   [`Writer::finish`] answer [`PutOutcome::Taken`] rather than overwrite, also when many tasks, threads
///   or processes store at the same moment.
/// - **Atomic.** A key reads as not found, or as the whole content, at every moment; a crash and a
///   dropped future included. After a dropped future the content is there whole or not at all.
/// - **Says the truth.** `Ok(PutOutcome::Stored)` and `Ok(PutOutcome::AlreadyThere)` mean that exactly this
///   content can be read under this key from now on. An error means that nobody knows; storing the
///   same again is always safe.
/// - **Inverse.** `resolve(locate(key)) == Some(key)`. What this store did not name resolves to
///   `None`. Neither does any I/O, and both give the same in another process over the same store.
/// - **Unique.** No two stores that can be used together give one location to different content, or
///   their [`store_id`](Self::store_id) tells them apart.
/// - **Bounded.** No call waits for ever: a store behind a network has a time-out of its own.
/// - **Removed whole.** Once [`remove`](Self::remove) has answered, its key reads as not found,
///   until something is stored there again; every other key reads as before, one that was copied
///   from it or to it included.
///
/// A store that wraps another hands on every method. What keeps a swept store readable is built of
/// these, and one that is left to its default is a wrapper's own.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// How hints name what is stored under `key`. A person, a model and [`resolve`](Self::resolve)
    /// all read it.
    fn locate(&self, key: &Key) -> Location;

    /// The key that a location names, or `None` if this store did not name it. `location` was
    /// written by a model: hostile.
    fn resolve(&self, location: &str) -> Option<Key>;

    /// What tells two stores apart that name their content alike: clones of one store have the
    /// same. `None`, the default, where the same location always means the same content. A
    /// configuration with two stores that differ in nothing else is refused.
    fn store_id(&self) -> Option<usize> {
        None
    }

    /// A store on this machine that takes what this one, for good, could not: see [`Writer::finish_in_spool`].
    /// `None`, the default, where there is none. What is kept there is as good as stored: its
    /// locations are resolved and read back like this store's own.
    fn spool(&self) -> Option<Arc<dyn Backend>> {
        None
    }

    /// Stores `content` under `key` if nothing is stored there.
    ///
    /// # Errors
    ///
    /// The store failed. Whether the content is there is not known.
    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError>;

    /// Opens a writer for content that comes piece by piece and is named at its end.
    ///
    /// # Errors
    ///
    /// The store failed.
    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError>;

    /// The bytes of `range` that are stored under `key`. What of the range lies behind the end is
    /// left out; a range that ends before it begins is empty.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if nothing is stored there, or the store failed.
    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError>;

    /// Everything that is stored, in no order. Content that is stored or removed meanwhile may be
    /// in it or not.
    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>>;

    /// Whether anybody may ever sweep what is stored here (`offcut-sweep`), by whichever way they
    /// reach it. `false` spares a look-up at each save and at each read, and nothing here is swept.
    fn can_be_swept(&self) -> bool {
        true
    }

    /// Removes what is stored under `key`; where nothing is, that is done already. Only a sweep
    /// calls it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] where nothing can be removed, as with this default; or the store
    /// failed, and nobody knows whether it is gone. Removing again is safe.
    async fn remove(&self, key: &Key) -> Result<(), BackendError> {
        let why = format!(
            "`{key}` can't be removed: this store has no `Backend::remove`, so it can't be swept"
        );
        Err(BackendError::new(ErrorKind::Unsupported, why))
    }

    /// Stores what is stored under `from` under `to` as well, as [`put`](Self::put) would. What it
    /// stores is stored now: [`Entry::stored_at`] of `to` says so, and that of `from` may.
    ///
    /// The default reads, and writes with a [`writer`](Self::writer).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if nothing is stored under `from`, or the store failed.
    async fn copy(&self, from: &Key, to: &Key) -> Result<PutOutcome, BackendError> {
        let mut writer = self.writer().await?;
        let mut at = 0;
        loop {
            let page = self.read(from, at..at + COPIED_AT_ONCE).await?;
            at += page.bytes.len() as u64;
            let is_broken = page.bytes.is_empty() && at < page.total;
            if is_broken {
                let why = format!(
                    "`{from}` ended after {at} of {} bytes: the store is broken",
                    page.total
                );
                return Err(BackendError::new(ErrorKind::Other, why));
            }
            writer.write(page.bytes).await?;
            if at >= page.total {
                return writer.finish(to).await;
            }
        }
    }

    /// Removes what processes that ended in the middle have left behind before `before` and nobody
    /// can read, and says how much of it there was. Only a sweep calls it. The default does nothing.
    ///
    /// # Errors
    ///
    /// The store failed.
    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        let _ = before;
        Ok(0)
    }
}

/// How many bytes the default of [`Backend::copy`] holds.
const COPIED_AT_ONCE: u64 = 1 << 20;

/// Content that comes piece by piece. Nothing is visible until [`finish`](Self::finish) has named
/// it; dropped before that, it leaves nothing behind.
#[async_trait]
pub trait Writer: fmt::Debug + Send {
    /// Appends `chunk`. Not to be called after [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// The store failed, or a call was dropped before it was done. Nothing more can be written;
    /// what was written before `chunk` should still be [read](Self::read), for it may be all there
    /// is.
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError>;

    /// The bytes of `range` of what was written so far, as [`Backend::read`] would give them: for
    /// content that turns out to be shown after all, or to be stored together with other content.
    /// Not to be called once [`finish`](Self::finish) has stored it. After a call that failed, a
    /// writer should still give what it has.
    ///
    /// # Errors
    ///
    /// The store failed.
    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError>;

    /// Stores what was written under `key`, as [`Backend::put`] would. After [`PutOutcome::Taken`] it can
    /// be called again with another key; after any other answer the writer is done.
    ///
    /// A store that can't make sure that it overwrites nothing, as with the multipart uploads of
    /// object stores, may answer [`PutOutcome::Taken`] for every key that [does not name its
    /// content](Key::is_addressed_by).
    ///
    /// # Errors
    ///
    /// The store failed.
    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError>;

    /// Once [`finish`](Self::finish) has failed: stores what was written under `key` in the store's
    /// [spool](Backend::spool), so that it is not lost. After [`PutOutcome::Taken`] it can be called again
    /// with another key.
    ///
    /// # Errors
    ///
    /// There is no spool, as with stores that are local themselves and with this default, or it
    /// failed too.
    async fn finish_in_spool(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        Err(BackendError::new(
            ErrorKind::Other,
            format!("`{key}` can't be kept: the store has no spool"),
        ))
    }
}

/// What became of content that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// It is stored now.
    Stored,
    /// The same bytes were stored under this key before.
    AlreadyThere,
    /// Something else is there: other bytes, or what this store can't take for content. It was left
    /// as it is.
    Taken,
}

/// A part of what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRange {
    /// The bytes of the range asked for, as far as there are any.
    pub bytes: Bytes,
    /// How many bytes are stored in all.
    pub total: u64,
}

/// One thing that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Under which key.
    pub key: Key,
    /// How many bytes.
    pub bytes: u64,
    /// Since when, by the store's clock.
    pub stored_at: SystemTime,
}

/// The name of stored content, as a hint shows it: a path, a URL.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Location(String);

impl Location {
    /// A location that reads as `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text of it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a store could not do what it was asked. Stored content is never part of it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing is stored under this key.
    NotFound,
    /// The store refuses: permissions, credentials, read-only.
    Denied,
    /// The store has no room left.
    Full,
    /// The store can't be reached or was too slow.
    Unavailable,
    /// The store has no such operation.
    Unsupported,
    /// Anything else.
    Other,
}

impl BackendError {
    /// A failure of `kind`. The message says what failed and what to do about it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// The same, with what caused it.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of failure it was.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later without anybody mending anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable)
    }
}

/// A store that is shared is a store.
#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn locate(&self, key: &Key) -> Location {
        (**self).locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        (**self).resolve(location)
    }

    fn store_id(&self) -> Option<usize> {
        (**self).store_id()
    }

    fn spool(&self) -> Option<Arc<dyn Backend>> {
        (**self).spool()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        (**self).put(key, content).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        (**self).writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        (**self).read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        (**self).list()
    }

    fn can_be_swept(&self) -> bool {
        (**self).can_be_swept()
    }

    async fn remove(&self, key: &Key) -> Result<(), BackendError> {
        (**self).remove(key).await
    }

    async fn copy(&self, from: &Key, to: &Key) -> Result<PutOutcome, BackendError> {
        (**self).copy(from, to).await
    }

    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        (**self).tidy(before).await
    }
}

const _: Option<&dyn Backend> = None; // stays object-safe
