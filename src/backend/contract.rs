//! The contract that every store fulfils.

use std::fmt;
use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use auto_impl::auto_impl;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::backend::error::{BackendError, ErrorKind};
use crate::backend::key::Key;

/// A store for content that leaves a conversation.
///
/// `Fs` (feature `fs`) and [`Memory`](crate::backend::Memory) are built in. To write your own, fulfil the
/// contract below and run `backend::conformance` of the crate `offcut-testkit` on it in your tests.
///
/// # Contract
///
/// - **Create-only.** The content of a key never changes. [`put`](Self::put) and [`Writer::finish`]
///   return [`PutOutcome::Taken`] rather than overwrite, even if many tasks, threads or processes
///   store at the same time.
/// - **Atomic.** At every moment a key reads as not found or as its whole content, even after a
///   crash or a dropped future.
/// - **Truthful.** [`PutOutcome::Stored`] and [`PutOutcome::AlreadyThere`] mean that from now
///   on the key reads as exactly this content. An error means that the outcome is unknown; storing
///   the same content again is always safe.
/// - **Inverse.** `resolve(locate(key)) == Some(key)`. A location that this store did not create
///   resolves to `None`. Neither method does any I/O, and both give the same answers in another
///   process over the same store.
/// - **Unique.** If two stores that can be used together give the same location to different
///   content, their [`store_id`](Self::store_id)s differ.
/// - **Bounded.** Every call ends: a store on a network has its own timeout.
/// - **Removed only when old.** [`remove`](Self::remove) never takes what was stored after the time
///   that it is given. After it has removed a key's content, the key reads as not found until
///   something is stored there again, and every other key reads as before.
///
#[doc = include_str!("skeleton.md")]
#[async_trait]
#[auto_impl(Arc)]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// Returns the location that hints show for `key`. People, models and
    /// [`resolve`](Self::resolve) read it.
    fn locate(&self, key: &Key) -> Location;

    /// Returns the key of a location, or `None` if this store did not create it. A model wrote
    /// `location`: treat it as hostile.
    fn resolve(&self, location: &str) -> Option<Key>;

    /// The present by the clock that tells when content was stored. The default is this process's
    /// clock, which may differ by some minutes. A store for tests may have one of its own.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Distinguishes stores that give the same locations to different content; clones of a store
    /// share the id. `None`, the default, means that a location always has the same content.
    /// Settings with two stores that differ only in their ids are refused.
    fn store_id(&self) -> Option<usize> {
        None
    }

    /// Stores `content` under `key` if nothing is stored there.
    ///
    /// # Errors
    ///
    /// The store failed. The content may or may not be there.
    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError>;

    /// Opens a writer for content that arrives in chunks and gets its key at the end.
    ///
    /// # Errors
    ///
    /// The store failed.
    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError>;

    /// Reads the bytes in `range` of the content of `key`. Bytes past the end are left out; a range
    /// that ends before it starts is empty.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if nothing is stored under `key`, or the store failed.
    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError>;

    /// Lists all content, in any order. Content stored or removed during the call may or may not
    /// appear.
    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>>;

    /// Removes the content of `key` if it was stored before `before`. Does nothing if there is none,
    /// or if it is newer. Only a sweep calls it.
    ///
    /// A store should look at the time and remove the content in one step. If it can't, it looks right
    /// before it removes, and two sweeps at once may then remove what is stored in between.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if the store can't remove content, as in this default: it is then
    /// never swept. Otherwise the store failed, and the content may or may not be gone; removing it
    /// again is safe.
    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        let _ = before;
        let why = format!(
            "`{key}` can't be removed: this store has no `Backend::remove`, so it can't be swept"
        );
        Err(BackendError::new(ErrorKind::Unsupported, why))
    }

    /// Removes unreadable leftovers of interrupted processes, older than `before`, and returns
    /// their number. Only a sweep calls it. The default does nothing.
    ///
    /// # Errors
    ///
    /// The store failed.
    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        let _ = before;
        Ok(0)
    }
}

/// A sink for content that arrives in chunks. Nothing is visible until [`finish`](Self::finish)
/// stores it under a key. A writer dropped before that leaves nothing behind.
#[async_trait]
pub trait Writer: fmt::Debug + Send {
    /// Appends `chunk`.
    ///
    /// # Errors
    ///
    /// The store failed, an earlier call was dropped before it ended, or the content is stored. No
    /// more can be written: later calls fail too. After a dropped call [`finish`](Self::finish) also
    /// fails, and stores nothing.
    /// Everything written before `chunk` should still be [readable](Self::read), as there may be no
    /// other copy.
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError>;

    /// Reads the bytes in `range` of the content so far, as [`Backend::read`] would. Used for
    /// content that must be shown after all, or stored together with other content. Must not be
    /// called once [`finish`](Self::finish) has stored the content. After a failed call, a writer
    /// should still return the bytes that it has.
    ///
    /// # Errors
    ///
    /// The store failed.
    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError>;

    /// Stores the content under `key`, as [`Backend::put`] would. After [`PutOutcome::AlreadyThere`]
    /// or [`PutOutcome::Taken`] it may be called again with another key. After
    /// [`PutOutcome::Stored`] the writer is done: [`write`](Self::write) and `finish` fail and store
    /// nothing.
    ///
    /// A store that can't prevent overwriting, such as an object store with multipart uploads, may
    /// return [`PutOutcome::Taken`] for every key that is [not derived from its
    /// content](Key::is_addressed_by).
    ///
    /// # Errors
    ///
    /// The store failed.
    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError>;
}

/// The outcome of storing content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The content is now stored.
    Stored,
    /// The same bytes were stored under this key before.
    AlreadyThere {
        /// Time at which those bytes were stored, by the store's clock.
        stored_at: SystemTime,
    },
    /// The key has other bytes, or an object that is not this store's content. It was left
    /// unchanged.
    Taken,
}

/// A range of stored content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRange {
    /// The bytes that exist in the requested range.
    pub bytes: Bytes,
    /// Length of the whole content in bytes.
    pub total: u64,
    /// Time of storing, by the store's clock.
    pub stored_at: SystemTime,
}

/// A list entry for stored content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: Key,
    /// Its length in bytes.
    pub bytes: u64,
    /// Time of storing, by the store's clock.
    pub stored_at: SystemTime,
}

/// The location of stored content as hints show it: a path or a URL.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Location(String);

impl Location {
    /// A location with the given text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns its text.
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

const _: Option<&dyn Backend> = None; // stays object-safe
