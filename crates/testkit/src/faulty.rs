//! A store that fails on cue.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, pending};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::backend::range::indexes_within;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};

/// A store that behaves like `inner` until its cue, to test code against failing stores.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use offcut::backend::{Backend, ErrorKind, Key, Memory, PutOutcome};
/// use offcut_testkit::{Fault, Faulty};
///
/// let store = Faulty::new(Memory::new());
/// store.fault_on_write(2, Fault::Fail(ErrorKind::Full));
///
/// assert_eq!(store.put(&Key::new("trunc/call_1")?, "one".into()).await?, PutOutcome::Stored);
/// let error = store.put(&Key::new("trunc/call_2")?, "two".into()).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Full);
/// assert_eq!(store.put(&Key::new("trunc/call_2")?, "two".into()).await?, PutOutcome::Stored);
/// assert_eq!(store.writes(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What counts
///
/// - a *write* is a call of [`Backend::put`], [`Backend::remove`] or
///   [`Writer::finish`], which can change visible content;
/// - a *chunk* is a call of [`Writer::write`];
/// - a *read* is a call of [`Backend::read`] or of [`Writer::read`].
///
/// Calls are counted from 1 at their first poll, over all clones, failed calls included. Opening a
/// writer, listing, tidying, locating and resolving are passed on and not counted.
#[derive(Debug)]
pub struct Faulty<B> {
    inner: Arc<B>,
    cues: Arc<Cues>,
}

/// A way for a call to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Does nothing and returns an error of this kind.
    Fail(ErrorKind),
    /// Does nothing and never returns.
    Hang,
    /// Takes effect, then returns an error of kind [`ErrorKind::Unavailable`], as if the answer was
    /// lost.
    ApplyThenFail,
    /// Takes effect, then never returns. Use it to drop a future that has already taken effect.
    ApplyThenHang,
}

#[derive(Debug, Default)]
struct Cues {
    writes: Mutex<Cue>,
    chunks: Mutex<Cue>,
    reads: Mutex<Cue>,
}

#[derive(Debug, Default)]
struct Cue {
    calls: u64,
    at: BTreeMap<u64, Fault>,
    every: Option<Fault>,
}

impl<B> Faulty<B> {
    /// Creates a store that passes every call on to `inner` until told otherwise.
    pub fn new(inner: B) -> Self {
        Self {
            inner: Arc::new(inner),
            cues: Arc::default(),
        }
    }

    /// Returns the inner store, whose calls are not counted.
    #[must_use]
    pub fn inner(&self) -> &B {
        &self.inner
    }

    /// Makes the `n`-th write fail once in this way, counted from 1 since the store was created.
    pub fn fault_on_write(&self, n: u64, fault: Fault) -> &Self {
        lock(&self.cues.writes).at.insert(n, fault);
        self
    }

    /// Makes the next write fail once in this way.
    pub fn fault_on_next_write(&self, fault: Fault) -> &Self {
        lock(&self.cues.writes).at_next(fault);
        self
    }

    /// Makes every write fail in this way from now on.
    pub fn fault_on_every_write(&self, fault: Fault) -> &Self {
        lock(&self.cues.writes).every = Some(fault);
        self
    }

    /// Makes the `n`-th chunk fail once in this way, counted from 1 over all writers.
    pub fn fault_on_chunk(&self, n: u64, fault: Fault) -> &Self {
        lock(&self.cues.chunks).at.insert(n, fault);
        self
    }

    /// Makes the `n`-th read fail once in this way, counted from 1 since the store was created.
    pub fn fault_on_read(&self, n: u64, fault: Fault) -> &Self {
        lock(&self.cues.reads).at.insert(n, fault);
        self
    }

    /// Makes the next read fail once in this way.
    pub fn fault_on_next_read(&self, fault: Fault) -> &Self {
        lock(&self.cues.reads).at_next(fault);
        self
    }

    /// Makes every read fail in this way from now on.
    pub fn fault_on_every_read(&self, fault: Fault) -> &Self {
        lock(&self.cues.reads).every = Some(fault);
        self
    }

    /// Cancels all faults that have not happened yet. Counting continues. A call that already hangs
    /// never returns.
    pub fn heal(&self) -> &Self {
        for cue in [&self.cues.writes, &self.cues.chunks, &self.cues.reads] {
            let mut cue = lock(cue);
            cue.at.clear();
            cue.every = None;
        }
        self
    }

    /// Number of writes so far.
    #[must_use]
    pub fn writes(&self) -> u64 {
        lock(&self.cues.writes).calls
    }

    /// Number of chunks so far.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        lock(&self.cues.chunks).calls
    }

    /// Number of reads so far.
    #[must_use]
    pub fn reads(&self) -> u64 {
        lock(&self.cues.reads).calls
    }
}

/// A clone shares the inner store, the counts and the pending faults.
impl<B> Clone for Faulty<B> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            cues: Arc::clone(&self.cues),
        }
    }
}

impl Cue {
    fn at_next(&mut self, fault: Fault) {
        self.at.insert(self.calls + 1, fault);
    }

    fn next(&mut self) -> Option<Fault> {
        self.calls += 1;
        self.at.remove(&self.calls).or(self.every)
    }
}

fn lock(cue: &Mutex<Cue>) -> MutexGuard<'_, Cue> {
    cue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes `call` with the fault that `cue` has for it.
async fn on_cue<T>(
    cue: &Mutex<Cue>,
    call: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    // A separate statement, so that the lock is released before the await.
    let fault = lock(cue).next();
    match fault {
        None => call.await,
        Some(Fault::Fail(kind)) => Err(injected(kind)),
        Some(Fault::Hang) => pending().await,
        Some(Fault::ApplyThenFail) => {
            call.await?;
            Err(injected(ErrorKind::Unavailable))
        }
        Some(Fault::ApplyThenHang) => {
            call.await?;
            pending().await
        }
    }
}

fn injected(kind: ErrorKind) -> BackendError {
    BackendError::new(kind, "the test made the store fail here")
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<B: Backend> Backend for Faulty<B> {
    fn locate(&self, key: &Key) -> Location {
        self.inner.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.inner.resolve(location)
    }

    fn now(&self) -> SystemTime {
        self.inner.now()
    }

    fn store_id(&self) -> Option<usize> {
        self.inner.store_id()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        on_cue(&self.cues.writes, self.inner.put(key, content)).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        Ok(Box::new(FaultyWriter {
            inner: self.inner.writer().await?,
            cues: Arc::clone(&self.cues),
            written: Vec::new(),
            has_failed: false,
        }))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        on_cue(&self.cues.reads, self.inner.read(key, range)).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.inner.list()
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        on_cue(&self.cues.writes, self.inner.remove(key, before)).await
    }

    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        self.inner.tidy(before).await
    }
}

/// Passes the chunks on and keeps a copy. After a failure it reads from the copy, as the contract
/// requires, whatever the state of the inner writer.
struct FaultyWriter {
    inner: Box<dyn Writer>,
    cues: Arc<Cues>,
    written: Vec<u8>,
    has_failed: bool,
}

impl fmt::Debug for FaultyWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyWriter")
            .field("inner", &self.inner)
            .field("written", &self.written.len())
            .finish()
    }
}

impl FaultyWriter {
    async fn read_now(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        if !self.has_failed {
            return self.inner.read(range).await;
        }
        let range = indexes_within(&range, self.written.len());
        Ok(Bytes::copy_from_slice(&self.written[range]))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Writer for FaultyWriter {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        let written = on_cue(&self.cues.chunks, self.inner.write(chunk.clone())).await;
        match written {
            Ok(()) => self.written.extend_from_slice(&chunk),
            Err(_) => self.has_failed = true,
        }
        written
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        let cues = Arc::clone(&self.cues);
        on_cue(&cues.reads, self.read_now(range)).await
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        let finished = on_cue(&self.cues.writes, self.inner.finish(key)).await;
        self.has_failed |= finished.is_err();
        finished
    }
}
