//! A store with a clock that the test sets. Its calls can be interleaved with others and cut short,
//! and it can tell wrong times, as if the library followed other rules.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A clock that only moves when told to.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Arc<Mutex<SystemTime>>);

impl Clock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(
            SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000),
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
}

/// A rule that is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Broken {
    #[default]
    Nothing,
    /// Equal content is reused however old it is.
    ReuseEnds,
    /// Decisions are repeated however old they are.
    RepeatingEnds,
    /// A sweep accepts the time for which content is reused as idle time.
    IdleIsLonger,
    /// A conversation is as old as the oldest thing in it.
    AgeByNewest,
    /// Reading old content is not noted.
    ReadingCounts,
    /// A sweep removes whatever is under a key that it has listed.
    RemovesOnlyOld,
}

#[derive(Clone, Debug)]
pub(crate) struct Clocked<B> {
    pub(crate) inner: B,
    pub(crate) clock: Clock,
    pub(crate) calls: Arc<Mutex<Calls>>,
    pub(crate) broken: Broken,
    times: Arc<Mutex<BTreeMap<Key, SystemTime>>>,
}

impl<B: Backend> Clocked<B> {
    pub(crate) fn new(inner: B, clock: &Clock) -> Self {
        Self {
            inner,
            clock: clock.clone(),
            calls: Arc::default(),
            broken: Broken::Nothing,
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

    fn stamp(&self, key: &Key, put: &Result<PutOutcome, BackendError>) {
        if matches!(put, Ok(PutOutcome::Stored)) {
            let mut times = self.times.lock().unwrap();
            times.insert(key.clone(), self.clock.now());
        }
    }

    /// The outcome of a put, with the time by this clock.
    fn told(&self, key: &Key, put: PutOutcome) -> PutOutcome {
        match put {
            PutOutcome::AlreadyThere { .. } => PutOutcome::AlreadyThere {
                stored_at: match self.broken {
                    Broken::ReuseEnds => self.clock.now(),
                    _ => self.time_of(key),
                },
            },
            put => put,
        }
    }

    fn time_of(&self, key: &Key) -> SystemTime {
        let times = self.times.lock().unwrap();
        times.get(key).copied().unwrap_or_else(|| self.clock.now())
    }

    /// The entry as it is listed; `None` if it is left out.
    fn listed(&self, mut entry: Entry) -> Option<Entry> {
        entry.stored_at = self.time_of(&entry.key);
        match self.broken {
            Broken::IdleIsLonger => entry.stored_at -= DAY,
            Broken::AgeByNewest => {
                let times = self.times.lock().unwrap();
                let same = |key: &Key| key.conversation() == entry.key.conversation();
                let all = times.iter().filter(|(key, _)| same(key));
                let oldest = all.map(|(_, time)| *time).min();
                entry.stored_at = oldest.unwrap_or(entry.stored_at);
            }
            Broken::ReadingCounts if entry.key.as_str().contains("meta/read-") => return None,
            _ => {}
        }
        Some(entry)
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

    fn now(&self) -> SystemTime {
        self.clock.now()
    }

    fn store_id(&self) -> Option<usize> {
        self.inner.store_id()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.call(async {
            let put = self.inner.put(key, content).await;
            self.stamp(key, &put);
            Ok(self.told(key, put?))
        })
        .await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        let writer = self.call(self.inner.writer()).await?;
        Ok(Box::new(ClockedWriter {
            store: self.clone(),
            inner: writer,
        }))
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.call(async {
            let page = self.inner.read(key, range).await?;
            let is_record = key.as_str().contains("meta/decided-");
            let seems_new = is_record && self.broken == Broken::RepeatingEnds;
            let stored_at = if seems_new {
                self.clock.now()
            } else {
                self.time_of(key)
            };
            Ok(ReadRange { stored_at, ..page })
        })
        .await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        let begun = self.call(async { Ok(()) });
        let entries = stream::once(begun).flat_map(|begun| match begun {
            Ok(()) => self.inner.list(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        });
        let listed = entries.filter_map(async |entry| match entry {
            Ok(entry) => self.listed(entry).map(Ok),
            Err(error) => Some(Err(error)),
        });
        listed.boxed()
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        self.call(async {
            let is_old = self.time_of(key) < before || self.broken == Broken::RemovesOnlyOld;
            // A variant that lists content as older takes it for old.
            let seems_old = matches!(self.broken, Broken::IdleIsLonger | Broken::AgeByNewest);
            if is_old || seems_old && before > SystemTime::UNIX_EPOCH {
                let ever = SystemTime::now() + DAY;
                self.inner.remove(key, ever).await?;
                self.times.lock().unwrap().remove(key);
            }
            Ok(())
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
                Ok(store.told(key, put?))
            })
            .await
    }
}
