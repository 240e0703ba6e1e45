//! A store in the process's memory.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};

use crate::backend::key::is_safe_segment;
use crate::backend::range::indexes_within;
use crate::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, KeyError, Location, PutOutcome, ReadRange, Writer,
};

/// A store in this process's memory, for tests and for conversations that end with the process.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::{Backend, Key, Memory, PutOutcome};
///
/// let store = Memory::new();
/// let key = Key::new("trunc/call_1")?;
/// assert_eq!(store.put(&key, "the whole result".into()).await?, PutOutcome::Stored);
/// assert_eq!(store.locate(&key).as_str(), "memory:/trunc/call_1");
/// assert_eq!(store.read(&key, 4..9).await?.bytes, "whole");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Default
///
/// - no name: locations read `memory:/trunc/call_1`. [`Memory::named`] sets a name.
///
/// # Guarantees
///
/// - Clones share their content, which is freed with the last clone. Until then only a sweep
///   removes content, so memory grows with each result stored.
/// - `put` keeps its [`Bytes`] without copying them. A slice keeps its whole buffer alive.
/// - Two stores with the same name resolve each other's locations but hold different content, so
///   they can't be used in one configuration.
#[derive(Clone, Default)]
pub struct Memory {
    name: Option<Arc<str>>,
    /// Content, with the time of storing.
    content: Arc<Mutex<BTreeMap<Key, (Bytes, SystemTime)>>>,
    /// Time by which its clock is ahead of this process's.
    ahead: Duration,
}

impl Memory {
    /// An empty store without a name.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store whose locations begin with `memory://name/`, to distinguish it from others.
    ///
    /// # Errors
    ///
    /// `name` can't be a segment of a [`Key`].
    pub fn named(name: impl AsRef<str>) -> Result<Self, KeyError> {
        let name = name.as_ref();
        if !is_safe_segment(name) {
            return Err(KeyError { length: name.len() });
        }
        Ok(Self {
            name: Some(name.into()),
            ..Self::default()
        })
    }

    /// The same store and content, as they are after `time`, for tests: its clock is ahead by so much,
    /// and everything stored before is older.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// use offcut::backend::{Backend, Key, Memory};
    /// use std::time::Duration;
    ///
    /// let store = Memory::new();
    /// store.put(&Key::new("trunc/call_1")?, "the whole result".into()).await?;
    /// let tomorrow = store.later_by(Duration::from_secs(86_400));
    /// assert_eq!(tomorrow.len(), 1);
    /// assert!(tomorrow.now() > store.now());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn later_by(&self, time: Duration) -> Self {
        Self {
            ahead: self.ahead + time,
            ..self.clone()
        }
    }

    /// Number of keys with content.
    #[must_use]
    pub fn len(&self) -> usize {
        self.content().len()
    }

    /// Returns true if nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.content().is_empty()
    }

    /// Total number of bytes stored. Linear in the number of keys.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let content = self.content();
        content.values().map(|(bytes, _)| bytes.len() as u64).sum()
    }

    /// Ignores lock poisoning: the map is consistent whenever the lock is free.
    fn content(&self) -> MutexGuard<'_, BTreeMap<Key, (Bytes, SystemTime)>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, key: &Key, bytes: &Bytes) -> PutOutcome {
        let mut content = self.content();
        match content.get(key) {
            None => {
                content.insert(key.clone(), (bytes.clone(), self.now()));
                PutOutcome::Stored
            }
            Some((stored, at)) if stored == bytes => PutOutcome::AlreadyThere { stored_at: *at },
            Some(_) => PutOutcome::Taken,
        }
    }
}

/// Shows the amount of content, never the content.
impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("name", &self.name)
            .field("len", &self.len())
            .field("bytes", &self.bytes())
            .finish()
    }
}

#[async_trait]
impl Backend for Memory {
    fn locate(&self, key: &Key) -> Location {
        Location::new(match &self.name {
            None => format!("memory:/{key}"),
            Some(name) => format!("memory://{name}/{key}"),
        })
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        let path = location.strip_prefix("memory:/")?;
        let path = match &self.name {
            None => path,
            Some(name) => path
                .strip_prefix('/')?
                .strip_prefix(&**name)?
                .strip_prefix('/')?,
        };
        Key::new(path).ok()
    }

    fn now(&self) -> SystemTime {
        SystemTime::now() + self.ahead
    }

    fn store_id(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.content).addr())
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        Ok(self.insert(key, &content))
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        Ok(Box::new(MemoryWriter {
            store: self.clone(),
            buffer: Some(Vec::new()),
        }))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let stored = self.content().get(key).cloned();
        let (bytes, stored_at) = stored.ok_or_else(|| {
            let why = format!("nothing is stored as {}", self.locate(key));
            BackendError::new(ErrorKind::NotFound, why)
        })?;
        Ok(ReadRange {
            bytes: bytes.slice(indexes_within(&range, bytes.len())),
            total: bytes.len() as u64,
            stored_at,
        })
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        let entry = |(key, (bytes, stored_at)): (&Key, &(Bytes, SystemTime))| {
            Ok(Entry {
                key: key.clone(),
                bytes: bytes.len() as u64,
                stored_at: *stored_at,
            })
        };
        let entries: Vec<_> = self.content().iter().map(entry).collect();
        stream::iter(entries).boxed()
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        let mut content = self.content();
        if content.get(key).is_some_and(|(_, at)| *at < before) {
            content.remove(key);
        }
        Ok(())
    }
}

/// Copies its chunks, since small slices of large read buffers would keep the whole buffers alive.
struct MemoryWriter {
    store: Memory,
    /// `None` once the content is stored.
    buffer: Option<Vec<u8>>,
}

impl fmt::Debug for MemoryWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryWriter")
            .field("bytes", &self.buffer.as_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Writer for MemoryWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        let buffer = self.buffer.as_mut().ok_or_else(finished)?;
        buffer.extend_from_slice(&chunk);
        Ok(())
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        let buffer = self.buffer.as_ref().ok_or_else(finished)?;
        let range = indexes_within(&range, buffer.len());
        Ok(Bytes::copy_from_slice(&buffer[range]))
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        let mut buffer = self.buffer.take().ok_or_else(finished)?;
        // Stored content may be kept for long, so free its spare capacity.
        buffer.shrink_to_fit();
        let content = Bytes::from(buffer);
        let put = self.store.insert(key, &content);
        if put != PutOutcome::Stored {
            self.buffer = Some(content.into());
        }
        Ok(put)
    }
}

pub(super) fn finished() -> BackendError {
    BackendError::new(
        ErrorKind::Other,
        "this writer's content is stored already: open another writer",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_segments() {
        for hostile in ["", "..", "a/b", "a b", "con", "grep\n"] {
            assert!(Memory::named(hostile).is_err(), "{hostile:?} was taken");
        }
        let key = Key::new("trunc/call_1").unwrap();
        let grep = Memory::named("grep").unwrap();
        assert_eq!(grep.locate(&key).as_str(), "memory://grep/trunc/call_1");
        assert_eq!(grep.resolve("memory:/trunc/call_1"), None);
        assert_eq!(Memory::new().resolve("memory://grep/trunc/call_1"), None);
    }

    #[test]
    fn l12_debug_never_shows_content() {
        let store = Memory::new();
        let clone = store.clone();
        store.insert(&Key::new("trunc/call_1").unwrap(), &"secret".into());
        assert_eq!(
            format!("{clone:?}"),
            "Memory { name: None, len: 1, bytes: 6 }"
        );
        assert_eq!(
            (clone.len(), clone.bytes(), clone.is_empty()),
            (1, 6, false)
        );
    }
}
