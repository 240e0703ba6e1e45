//! A store with a clock that the test sets. Its calls can be interleaved with others and cut short.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};

/// A clock that only moves when told to. It starts at a time that is not before the real one.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Arc<Mutex<SystemTime>>);

impl Clock {
    pub(crate) fn new() -> Self {
        // A day ahead, because a test takes time.
        Self(Arc::new(Mutex::new(
            SystemTime::now() + Duration::from_secs(86_400),
        )))
    }

    pub(crate) fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }

    pub(crate) fn turn(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

/// Rules for the calls of a store, and their count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    /// True if each call yields before and after.
    pub(crate) give_way: bool,
    /// Number of calls that may still succeed; all later ones fail.
    pub(crate) left: Option<usize>,
    /// Number of calls so far.
    pub(crate) made: usize,
    /// True if there is no space left: every call that stores something fails.
    pub(crate) full: bool,
    /// True if only leases can't be written.
    pub(crate) without_lease: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Clocked<B> {
    pub(crate) inner: B,
    pub(crate) clock: Clock,
    pub(crate) calls: Arc<Mutex<Calls>>,
    times: Arc<Mutex<BTreeMap<Key, SystemTime>>>,
}

impl<B: Backend> Clocked<B> {
    pub(crate) fn new(inner: B, clock: &Clock) -> Self {
        Self {
            inner,
            clock: clock.clone(),
            calls: Arc::default(),
            times: Arc::default(),
        }
    }

    /// Returns the same store and clock with other rules for calls.
    pub(crate) fn with_calls(&self, calls: Calls) -> Self
    where
        B: Clone,
    {
        Self {
            calls: Arc::new(Mutex::new(calls)),
            ..self.clone()
        }
    }

    pub(crate) async fn bytes(&self) -> u64 {
        let entries: Vec<_> = self.inner.list().collect().await;
        entries.into_iter().map(|entry| entry.unwrap().bytes).sum()
    }

    async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let gives_way = {
            let mut calls = self.calls.lock().unwrap();
            calls.made += 1;
            if let Some(left) = &mut calls.left {
                let Some(fewer) = left.checked_sub(1) else {
                    return Err(BackendError::new(
                        ErrorKind::Unavailable,
                        "the store was told to fail here",
                    ));
                };
                *left = fewer;
            }
            calls.give_way
        };
        if gives_way {
            give_way().await;
        }
        let done = call.await;
        if gives_way {
            give_way().await;
        }
        done
    }

    /// Runs a call that stores something.
    async fn store<T>(
        &self,
        key: Option<&Key>,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let is_lease = key.is_some_and(|key| key.as_str().starts_with("swept/lease-"));
        let is_full = {
            let calls = self.calls.lock().unwrap();
            calls.full || calls.without_lease && is_lease
        };
        self.call(async {
            if is_full {
                Err(BackendError::new(ErrorKind::Full, "no space is left"))
            } else {
                call.await
            }
        })
        .await
    }

    fn stamp(&self, key: &Key, put: &Result<PutOutcome, BackendError>) {
        if matches!(put, Ok(PutOutcome::Stored)) {
            self.times
                .lock()
                .unwrap()
                .insert(key.clone(), self.clock.now());
        }
    }
}

/// Is pending once.
pub(crate) async fn give_way() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[async_trait]
impl<B: Backend + Clone> Backend for Clocked<B> {
    fn locate(&self, key: &Key) -> Location {
        self.inner.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.inner.resolve(location)
    }

    fn store_id(&self) -> Option<usize> {
        self.inner.store_id()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.store(Some(key), async {
            let put = self.inner.put(key, content).await;
            self.stamp(key, &put);
            put
        })
        .await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        let writer = self.store(None, self.inner.writer()).await?;
        Ok(Box::new(ClockedWriter {
            store: self.clone(),
            inner: writer,
        }))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.call(self.inner.read(key, range)).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        let listed = self.inner.list().map(|entry| {
            let mut entry = entry?;
            if let Some(time) = self.times.lock().unwrap().get(&entry.key) {
                entry.stored_at = *time;
            }
            Ok(entry)
        });
        listed.boxed()
    }

    async fn remove(&self, key: &Key) -> Result<(), BackendError> {
        self.call(self.inner.remove(key)).await
    }

    async fn copy(&self, from: &Key, to: &Key) -> Result<PutOutcome, BackendError> {
        self.store(Some(to), async {
            let put = self.inner.copy(from, to).await;
            self.stamp(to, &put);
            put
        })
        .await
    }

    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        self.call(self.inner.tidy(before)).await
    }
}

#[derive(Debug)]
struct ClockedWriter<B> {
    store: Clocked<B>,
    inner: Box<dyn Writer>,
}

#[async_trait]
impl<B: Backend + Clone> Writer for ClockedWriter<B> {
    async fn write(&mut self, chunk: Bytes) -> Result<(), BackendError> {
        self.store.call(self.inner.write(chunk)).await
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, BackendError> {
        self.store.call(self.inner.read(range)).await
    }

    async fn finish(&mut self, key: &Key) -> Result<PutOutcome, BackendError> {
        let Self { store, inner } = self;
        store
            .call(async {
                let put = inner.finish(key).await;
                store.stamp(key, &put);
                put
            })
            .await
    }
}
