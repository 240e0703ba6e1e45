//! Stops asking a store that is down, so that no request waits for it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::ErrorChain;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// A store that failed this many times in a row is left alone.
const FAILURES: u32 = 3;
/// The key under which a look stores something, and removes it again.
const LOOKED_AT: &str = "meta/is-it-there";
/// A look removes what was stored before a time that is this far ahead, whatever the store's clock says.
const AHEAD: Duration = Duration::from_secs(24 * 60 * 60);
/// The time between two looks at a store that is left alone.
const PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of bytes that a look stores.
const MOST_LOOKED: usize = 1 << 20;
/// A call that takes longer counts as failed, whatever it answers.
const PATIENCE: Duration = Duration::from_secs(2);
/// The speed in bytes a second from which on calls with much content are not slow.
const BYTES_PER_SECOND: u64 = 1 << 20;

/// A store with a circuit breaker. If [`FAILURES`] calls in a row find it unavailable or slow,
/// further puts and reads fail without asking it. If it refuses so many puts, only further puts do. Every [`PAUSE`]
/// it is then looked at in the background, and is asked again as soon as it answers, or takes as much as it refused.
#[derive(Clone, Debug)]
pub(crate) struct Breaker {
    store: Arc<dyn Backend>,
    state: Arc<Mutex<Standing>>,
}

#[derive(Debug, Default)]
struct Standing {
    failed_in_a_row: u32,
    /// True while the store is left alone.
    is_left_alone: bool,
    /// Number of puts in a row that it answered and refused: it is full, say, or read-only.
    refused_in_a_row: u32,
    /// Number of bytes that it refused last.
    refused_bytes: usize,
    /// True while it is given nothing.
    is_given_nothing: bool,
    /// True while it is looked at in the background.
    is_watched: bool,
}

impl Breaker {
    pub(crate) fn new(store: Arc<dyn Backend>) -> Self {
        let state = Arc::default();
        Self { store, state }
    }

    /// Returns true if the store takes content. One that is left alone is looked at in the background.
    pub(crate) async fn is_ready(&self) -> bool {
        let bytes = self.state().refused_bytes;
        let answer = self.ask(0, |_| 0, look(&self.store, bytes)).await;
        self.learn(&answer, bytes);
        answer.is_ok() && self.is_available()
    }

    /// Returns true unless the store is left alone, or has refused content.
    pub(crate) fn is_available(&self) -> bool {
        let state = self.state();
        !state.is_left_alone && state.refused_in_a_row == 0
    }

    /// Learns from the answer to a put of `bytes` bytes. Content that is there already needs no room.
    fn learn(&self, answer: &Result<PutOutcome, BackendError>, bytes: usize) {
        let mut state = self.state();
        match answer {
            Ok(PutOutcome::Stored) => {
                if state.refused_in_a_row > 0 {
                    tracing::warn!("the store takes new content again");
                }
                (state.refused_in_a_row, state.refused_bytes) = (0, 0);
                state.is_given_nothing = false;
            }
            Err(error) if error.kind() != ErrorKind::Unavailable => {
                state.refused_in_a_row += 1;
                if state.refused_in_a_row == 1 {
                    let error = ErrorChain(error);
                    tracing::warn!(%error, "the store does not take new content");
                }
                state.refused_bytes = bytes.min(MOST_LOOKED);
                if state.refused_in_a_row >= FAILURES {
                    state.is_given_nothing = true;
                    self.watch(&mut state);
                }
            }
            _ => {}
        }
    }

    /// The place of the store, without secrets, as far as a label may hold it.
    pub(crate) fn name(&self) -> String {
        let at = Key::new(LOOKED_AT).map(|key| self.store.locate(&key).to_string());
        let at = at.unwrap_or_default();
        let place = at.strip_suffix(LOOKED_AT).unwrap_or(&at);
        let plain = place.chars().filter(|letter| !letter.is_control());
        plain
            .filter(|letter| !['"', '\\'].contains(letter))
            .collect()
    }

    /// Awaits an answer, unless the store is left alone. It may take longer for the bytes that are `sent`, and
    /// for those `received` with it.
    async fn ask<T>(
        &self,
        sent: u64,
        received: fn(&T) -> u64,
        answer: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        self.may_ask()?;
        let mut asked = RunningCall {
            breaker: self,
            begun: Instant::now(),
            bytes: sent,
            failure: None,
        };
        let answer = answer.await;
        asked.bytes += answer.as_ref().map_or(0, received);
        if let Err(error) = &answer {
            asked.failure = is_down(&answer).then(|| ErrorChain(error).to_string());
        }
        answer
    }

    fn may_ask(&self) -> Result<(), BackendError> {
        let is_left_alone = self.state().is_left_alone;
        unless(is_left_alone, "failed", "answered")
    }

    fn may_put(&self) -> Result<(), BackendError> {
        self.may_ask()?;
        let is_given_nothing = self.state().is_given_nothing;
        unless(is_given_nothing, "refused content", "taken any")
    }

    /// Looks at the store in the background until it is asked again.
    fn watch(&self, state: &mut Standing) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if !std::mem::replace(&mut state.is_watched, true) {
            let breaker = self.clone();
            runtime.spawn(async move {
                while breaker.is_to_be_watched() {
                    sleep(PAUSE).await;
                    breaker.look().await;
                }
            });
        }
    }

    fn is_to_be_watched(&self) -> bool {
        let mut state = self.state();
        state.is_watched = state.is_left_alone || state.is_given_nothing;
        state.is_watched
    }

    async fn look(&self) {
        let (begun, bytes) = (Instant::now(), self.state().refused_bytes);
        let answer = look(&self.store, bytes).await;
        if !is_down(&answer) && begun.elapsed() <= PATIENCE {
            let mut state = self.state();
            if state.is_left_alone {
                tracing::warn!("the store answers again");
            }
            (state.failed_in_a_row, state.is_left_alone) = (0, false);
        }
        if matches!(answer, Ok(put) if put != PutOutcome::Stored) {
            // Only a result can tell.
            self.state().is_given_nothing = false;
        }
        self.learn(&answer, bytes);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Standing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails with what the store `has` done, and has not done `since`, if it is so.
fn unless(is_so: bool, has: &str, since: &str) -> Result<(), BackendError> {
    if !is_so {
        return Ok(());
    }
    let message =
        format!("not asked: the store {has} {FAILURES} times in a row, and has not {since} since");
    Err(BackendError::new(ErrorKind::Unavailable, message))
}

/// Stores `bytes` bytes, three at least, and removes them again. A store that removes nothing keeps them, and
/// then only answers.
async fn look(store: &Arc<dyn Backend>, bytes: usize) -> Result<PutOutcome, BackendError> {
    let Ok(key) = Key::new(LOOKED_AT) else {
        return Ok(PutOutcome::Taken);
    };
    let content = Bytes::from(vec![b'.'; bytes.max(3)]);
    let put = store.put(&key, content).await?;
    _ = store.remove(&key, store.now() + AHEAD).await;
    Ok(put)
}

fn is_down<T>(answer: &Result<T, BackendError>) -> bool {
    matches!(answer, Err(error) if error.kind() == ErrorKind::Unavailable)
}

/// A call that is running. One that is given up counts too, if it was slow.
struct RunningCall<'b> {
    breaker: &'b Breaker,
    begun: Instant,
    bytes: u64,
    failure: Option<String>,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let mut state = self.breaker.state();
        let patience = PATIENCE + Duration::from_secs(self.bytes / BYTES_PER_SECOND);
        if self.failure.is_none() && self.begun.elapsed() <= patience {
            // A call that began before the store was left alone says nothing about now.
            state.failed_in_a_row = 0;
            return;
        }
        state.failed_in_a_row += 1;
        if state.failed_in_a_row >= FAILURES && !state.is_left_alone {
            state.is_left_alone = true;
            self.breaker.watch(&mut state);
            tracing::warn!(
                error = self.failure.as_deref().unwrap_or("it took too long"),
                "the store failed {FAILURES} times in a row and is left alone until it answers: \
                 what needs it passes as it came"
            );
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for Breaker {
    fn locate(&self, key: &Key) -> Location {
        self.store.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.store.resolve(location)
    }

    fn now(&self) -> SystemTime {
        self.store.now()
    }

    fn store_id(&self) -> Option<usize> {
        self.store.store_id()
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.may_put()?;
        let sent = content.len();
        let answer = self.store.put(key, content);
        let put = self.ask(sent as u64, |_| 0, answer).await;
        self.learn(&put, sent);
        put
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        self.may_put()?;
        self.store.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let received = |read: &ReadRange| read.bytes.len() as u64;
        self.ask(0, received, self.store.read(key, range)).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.store.list()
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        self.store.remove(key, before).await
    }

    async fn tidy(&self, before: SystemTime) -> Result<u64, BackendError> {
        self.store.tidy(before).await
    }
}

#[cfg(test)]
mod tests {
    use offcut::backend::Memory;
    use offcut_testkit::{Fault, Faulty};

    use super::*;

    const DOWN: Fault = Fault::Fail(ErrorKind::Unavailable);

    fn breaker() -> (Arc<Faulty<Memory>>, Breaker) {
        let store = Arc::new(Faulty::new(Memory::new()));
        (store.clone(), Breaker::new(store))
    }

    async fn put(breaker: &Breaker, name: &str) -> Result<PutOutcome, BackendError> {
        let key = Key::new(format!("trunc/{name}")).unwrap();
        breaker.put(&key, Bytes::from_static(b"content")).await
    }

    async fn fail(store: &Faulty<Memory>, breaker: &Breaker, times: u32) {
        for n in 0..times {
            store.fault_on_next_write(DOWN);
            assert!(put(breaker, &n.to_string()).await.is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_failed_is_left_alone_until_it_answers() {
        let (store, breaker) = breaker();
        fail(&store, &breaker, FAILURES).await;
        let asked = store.writes();
        let error = put(&breaker, "x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().starts_with("not asked: "), "{error}");
        assert!(!breaker.is_ready().await);
        assert_eq!((store.writes(), store.reads()), (asked, 0));

        // A look that fails changes nothing, and nobody has to ask for the next one.
        store.fault_on_next_write(DOWN);
        sleep(PAUSE + PAUSE / 2).await;
        assert_eq!((store.writes(), breaker.is_available()), (asked + 1, false));
        assert!(put(&breaker, "x").await.is_err());
        sleep(PAUSE).await;
        assert!(breaker.is_available());
        assert_eq!(put(&breaker, "x").await.unwrap(), PutOutcome::Stored);
        // It counts from the beginning again.
        fail(&store, &breaker, FAILURES - 1).await;
        assert_eq!(put(&breaker, "y").await.unwrap(), PutOutcome::Stored);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_takes_nothing_is_asked_and_is_not_available() {
        let (store, breaker) = breaker();
        let states = async || (breaker.is_available(), breaker.is_ready().await);
        assert_eq!(states().await, (true, true));
        let key = Key::new(LOOKED_AT).unwrap();
        assert!(store.read(&key, 0..9).await.is_err(), "nothing stays");
        assert_eq!(breaker.state().refused_bytes, 0);
        for kind in [ErrorKind::Full, ErrorKind::Denied, ErrorKind::Other] {
            for n in 0..FAILURES {
                store.fault_on_next_write(Fault::Fail(kind));
                let error = put(&breaker, &n.to_string()).await.unwrap_err();
                assert_eq!(error.kind(), kind);
            }
            assert_eq!(breaker.state().refused_bytes, b"content".len());
            let error = put(&breaker, "x").await.unwrap_err().to_string();
            assert!(error.starts_with("not asked: "), "{error}");
            let read = breaker.read(&key, 0..9).await.unwrap_err();
            assert_eq!(read.kind(), ErrorKind::NotFound, "it is still read");
            store.fault_on_next_write(Fault::Fail(kind));
            assert_eq!(states().await, (false, false), "{kind:?}");
            assert_eq!(states().await, (false, true), "a look finds out");
            assert_eq!(states().await, (true, true));
        }
        assert!(put(&breaker, "x").await.is_ok());
        // Nobody has to ask whether it is ready.
        for n in 0..FAILURES {
            store.fault_on_next_write(Fault::Fail(ErrorKind::Full));
            assert!(put(&breaker, &format!("full-{n}")).await.is_err());
        }
        sleep(PAUSE + PAUSE / 2).await;
        assert!(breaker.is_available());
        assert!(put(&breaker, "z").await.is_ok() && breaker.is_available());
        store.fault_on_next_write(Fault::Fail(ErrorKind::Full));
        assert!(put(&breaker, "y").await.is_err() && !breaker.is_available());
        assert!(put(&breaker, "x").await.is_ok() && !breaker.is_available());
        assert!(put(&breaker, "y").await.is_ok() && breaker.is_available());
    }

    #[tokio::test(start_paused = true)]
    async fn only_failures_in_a_row_count() {
        let (store, breaker) = breaker();
        for round in 0..5 {
            fail(&store, &breaker, FAILURES - 1).await;
            assert!(put(&breaker, &format!("round-{round}")).await.is_ok());
        }
        let missing = Key::new("trunc/missing").unwrap();
        for _ in 0..5 {
            let error = breaker.read(&missing, 0..9).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        assert!(breaker.is_ready().await);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_are_given_up_count_if_they_were_slow() {
        for (waited, is_ready) in [(PATIENCE / 2, true), (PATIENCE * 2, false)] {
            let (store, breaker) = breaker();
            for n in 0..FAILURES {
                store.fault_on_next_write(Fault::Hang);
                let name = n.to_string();
                let put = tokio::time::timeout(waited, put(&breaker, &name));
                assert!(put.await.is_err());
            }
            assert_eq!(breaker.is_ready().await, is_ready, "{waited:?}");
        }
    }
}
