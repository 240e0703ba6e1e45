//! Stops asking a store that is down, so that no request waits for it.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use offcut::ErrorChain;
use offcut::backend::{
    Backend, BackendError, Entry, ErrorKind, Key, Location, PutOutcome, ReadRange, Writer,
};
use tokio::time::{Instant, sleep, timeout};

use crate::gateway::body::BoxError;
use crate::lock::locked;

/// Strikes for a call that failed. One that succeeded takes one away, so failures add up where more than a quarter
/// of all calls fail.
const FAILURE: u32 = 3;
/// Strikes at which a store is left alone: those of three failures in a row, or of one call that took too long.
const OUT: u32 = 3 * FAILURE;
/// Time for a call, besides [`BYTES_PER_SECOND`].
const PATIENCE: Duration = Duration::from_secs(2);
/// The speed in bytes a second from which on calls with much content are not slow.
const BYTES_PER_SECOND: u64 = 1 << 20;
/// The time before a store that is left alone is probed again, and for which an answer counts as fresh.
const PAUSE: Duration = Duration::from_secs(3);
/// Number of looks in a probe, and the time between them: together more than a second, since some stores come and go.
const LOOKS: usize = 4;
const GAP: Duration = Duration::from_millis(400);
/// The key under which a look stores something, and removes it again.
const LOOKED_AT: &str = "meta/is-it-there";
/// A look removes what was stored before a time that is this far ahead, whatever the store's clock says.
const AHEAD: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of bytes that a look stores.
const MOST_LOOKED: usize = 1 << 20;

/// The error of a store that is left alone.
pub(crate) const NOT_ASKED: &str =
    "not asked: the store failed or refused content, and has not taken any since";

/// Opens a store by its URL, or gives the one that is open.
pub(crate) type Open<'a> = dyn Fn(&str) -> Result<Arc<dyn Backend>, BoxError> + Send + Sync + 'a;

/// A store with a circuit breaker. Each call has [`PATIENCE`], in which one that fails is made once more. At [`OUT`]
/// strikes, puts and reads fail without asking the store; if it answers and only refuses puts, reads are still asked.
/// It is then probed in the background, and asked again once [`LOOKS`] looks in a row found that it takes content, as
/// much as it refused.
#[derive(Clone, Debug)]
pub(crate) struct Breaker {
    store: Arc<dyn Backend>,
    state: Arc<Mutex<Standing>>,
}

#[derive(Debug, Default)]
struct Standing {
    strikes: u32,
    /// Number of bytes of the newest put that it answered and refused: it is full, say, or read-only. `None` once it
    /// has stored something.
    refused: Option<usize>,
    /// The time of the last answer to a put.
    answered: Option<Instant>,
}

impl Standing {
    fn is_out(&self) -> bool {
        self.strikes >= OUT
    }
}

impl Breaker {
    pub(crate) fn new(store: Arc<dyn Backend>) -> Self {
        let state = Arc::default();
        Self { store, state }
    }

    /// Fails unless the store takes content, as far as is known, or by a look if the last answer is not fresh.
    pub(crate) async fn ready(&self) -> Result<(), BackendError> {
        let is_fresh = {
            let state = locked(&self.state);
            let answered = state.answered;
            state.is_out() || answered.is_some_and(|answered| answered.elapsed() < PAUSE)
        };
        if !is_fresh {
            self.look().await?;
        }
        let state = locked(&self.state);
        match state.is_out() || state.refused.is_some() {
            true => Err(BackendError::new(ErrorKind::Unavailable, NOT_ASKED)),
            false => Ok(()),
        }
    }

    /// The place of the store, without secrets, as far as a label may hold it.
    pub(crate) fn name(&self) -> String {
        let at = Key::new(LOOKED_AT).map(|key| self.store.locate(&key).to_string());
        let at = at.unwrap_or_default();
        let place = at.strip_suffix(LOOKED_AT).unwrap_or(&at);
        let is_plain = |letter: &char| !letter.is_control() && !['"', '\\'].contains(letter);
        place.chars().filter(is_plain).collect()
    }

    /// Makes a call, twice if it fails and there is time. `put` is the number of bytes that it stores, `bytes` of those
    /// that it may move.
    async fn ask<'c, T: Send>(
        &self,
        put: Option<usize>,
        bytes: u64,
        call: impl Fn() -> BoxFuture<'c, Result<T, BackendError>> + Send,
    ) -> Result<T, BackendError> {
        self.allows(put.is_some())?;
        let calls = async {
            let answer = call().await;
            if !is_down(&answer) {
                return answer;
            }
            self.learn(&answer, put, FAILURE);
            call().await
        };
        self.within(put, bytes, calls).await
    }

    /// Fails if the store is not to be asked. One that only refuses puts is still read.
    fn allows(&self, is_put: bool) -> Result<(), BackendError> {
        let state = locked(&self.state);
        match state.is_out() && (is_put || state.refused.is_none()) {
            true => Err(BackendError::new(ErrorKind::Unavailable, NOT_ASKED)),
            false => Ok(()),
        }
    }

    /// Awaits an answer for as long as it may take, and learns from it.
    async fn within<T>(
        &self,
        put: Option<usize>,
        bytes: u64,
        answer: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let patience = PATIENCE + Duration::from_secs(bytes / BYTES_PER_SECOND);
        let (answer, strikes) = match timeout(patience, answer).await {
            Ok(answer) => (answer, FAILURE),
            Err(_) => {
                let message = format!("the store took more than {} s", patience.as_secs());
                (Err(BackendError::new(ErrorKind::Unavailable, message)), OUT)
            }
        };
        self.learn(&answer, put, strikes);
        answer
    }

    /// Learns from an answer, which costs `strikes` if it is a failure.
    fn learn<T>(&self, answer: &Result<T, BackendError>, put: Option<usize>, strikes: u32) {
        let mut state = locked(&self.state);
        let was_out = state.is_out();
        if put.is_some() && !is_down(answer) {
            state.answered = Some(Instant::now());
        }
        match answer {
            Err(error) if put.is_some() || is_down(answer) => {
                state.refused = put.filter(|_| !is_down(answer));
                state.strikes = OUT.min(state.strikes + strikes);
                if state.is_out() && !was_out {
                    let error = ErrorChain(error);
                    tracing::warn!(%error, "the store is left alone until it takes content again");
                    self.watch();
                }
            }
            // A call that began before the store was left alone says nothing about now, nor a read about room.
            _ if was_out || put.is_none() && state.refused.is_some() => {}
            _ => state.strikes = state.strikes.saturating_sub(1),
        }
    }

    /// Probes the store in the background until it is asked again.
    fn watch(&self) {
        let breaker = self.clone();
        tokio::spawn(async move {
            let mut good = 0;
            while good < LOOKS {
                sleep(if good == 0 { PAUSE } else { GAP }).await;
                good = match breaker.look().await {
                    Ok(()) => good + 1,
                    Err(_) => 0,
                };
            }
            locked(&breaker.state).strikes = 0;
            tracing::warn!("the store answers again");
        });
    }

    /// Stores something, as much as was refused last, and removes it again. Fails if the store does not take it. One
    /// that removes nothing keeps it, and then only answers.
    async fn look(&self) -> Result<(), BackendError> {
        let key = Key::new(LOOKED_AT);
        let key = key.map_err(|error| BackendError::new(ErrorKind::Other, error.to_string()))?;
        let bytes = locked(&self.state)
            .refused
            .map_or(3, |bytes| bytes.clamp(3, MOST_LOOKED));
        let put = self.store.put(&key, vec![b'.'; bytes].into());
        let put = self.within(Some(bytes), bytes as u64, put).await;
        self.took(&put);
        put?;
        let remove = self.store.remove(&key, self.store.now() + AHEAD);
        let removed = self.within(None, 0, remove).await;
        if is_down(&removed) { removed } else { Ok(()) }
    }

    /// Notes that the store takes content if a put tells: what is there already needs no room.
    fn took(&self, put: &Result<PutOutcome, BackendError>) {
        if matches!(put, Ok(PutOutcome::Stored)) {
            locked(&self.state).refused = None;
        }
    }
}

fn is_down<T>(answer: &Result<T, BackendError>) -> bool {
    matches!(answer, Err(error) if error.kind() == ErrorKind::Unavailable)
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
        let bytes = content.len();
        let call = || self.store.put(key, content.clone());
        let put = self.ask(Some(bytes), bytes as u64, call).await;
        self.took(&put);
        put
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        self.allows(true)?;
        self.store.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        let bytes = range.end.saturating_sub(range.start);
        let call = || self.store.read(key, range.clone());
        self.ask(None, bytes, call).await
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
    const FULL: Fault = Fault::Fail(ErrorKind::Full);
    /// The time that a store which is whole again is left alone: at most.
    const RECOVERY: Duration = Duration::from_secs(5);

    fn breaker() -> (Arc<Faulty<Memory>>, Breaker) {
        let store = Arc::new(Faulty::new(Memory::new()));
        (store.clone(), Breaker::new(store))
    }

    async fn put(breaker: &Breaker, name: &str) -> Result<PutOutcome, BackendError> {
        let key = Key::new(format!("trunc/{name}")).unwrap();
        breaker.put(&key, Bytes::from_static(b"content")).await
    }

    fn is_available(breaker: &Breaker) -> bool {
        let state = locked(&breaker.state);
        !state.is_out() && state.refused.is_none()
    }

    /// Puts until the store is left alone, and returns the number of puts.
    async fn puts_until_out(breaker: &Breaker) -> usize {
        for n in 1..100 {
            _ = put(breaker, &n.to_string()).await;
            if locked(&breaker.state).is_out() {
                return n;
            }
        }
        panic!("it is still asked")
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_failed_is_left_alone_until_it_answers() {
        let (store, breaker) = breaker();
        store.fault_on_every_write(DOWN);
        // Each is made twice.
        assert_eq!(puts_until_out(&breaker).await, 2);
        let asked = store.writes();
        let error = put(&breaker, "x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().starts_with("not asked: "), "{error}");
        let key = Key::new("trunc/x").unwrap();
        assert!(breaker.read(&key, 0..9).await.is_err());
        assert!(breaker.ready().await.is_err() && !is_available(&breaker));
        assert_eq!((store.writes(), store.reads()), (asked, 0));

        // A look that fails ends a probe, and nobody has to ask for the next one.
        sleep(PAUSE + PAUSE / 2).await;
        assert_eq!((store.writes(), is_available(&breaker)), (asked + 1, false));
        store.heal();
        sleep(RECOVERY).await;
        assert!(is_available(&breaker));
        assert_eq!(put(&breaker, "x").await.unwrap(), PutOutcome::Stored);
        // It counts from the beginning again.
        store.fault_on_next_write(DOWN);
        assert_eq!(put(&breaker, "y").await.unwrap(), PutOutcome::Stored);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_flaps_is_left_alone_until_it_does_not() {
        for is_each_second_call in [true, false] {
            let (store, breaker) = breaker();
            if is_each_second_call {
                (0..1_000).for_each(|n| _ = store.fault_on_write(2 * n, DOWN));
            } else {
                store.fault_on_every_write(DOWN);
            }
            assert!(puts_until_out(&breaker).await < 10);
            let asked = store.writes();
            for tenth in 0..600 {
                sleep(Duration::from_millis(100)).await;
                match tenth % 20 {
                    _ if is_each_second_call => {}
                    0 => _ = store.heal(),
                    10 => _ = store.fault_on_every_write(DOWN),
                    _ => {}
                }
                assert!(put(&breaker, "x").await.is_err());
            }
            // A minute of probes, each of which removes what it stores.
            assert!(store.writes() - asked < 120, "{store:?}");
            store.heal();
            sleep(RECOVERY).await;
            assert!(is_available(&breaker));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn failures_that_are_few_are_made_good() {
        let (store, breaker) = breaker();
        for n in 0..50 {
            store.fault_on_next_write(DOWN);
            for part in 0..3 {
                let put = put(&breaker, &format!("{n}-{part}")).await;
                assert_eq!(put.unwrap(), PutOutcome::Stored);
            }
        }
        let missing = Key::new("trunc/missing").unwrap();
        for _ in 0..5 {
            let error = breaker.read(&missing, 0..9).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        assert!(breaker.ready().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_has_its_time() {
        for (bytes, seconds) in [(9, 2), (5 << 20, 7)] {
            let (store, breaker) = breaker();
            store.fault_on_next_write(Fault::Hang);
            let begun = Instant::now();
            let key = Key::new("trunc/x").unwrap();
            let put = breaker.put(&key, vec![b'x'; bytes].into()).await;
            assert_eq!(put.unwrap_err().kind(), ErrorKind::Unavailable);
            assert_eq!(begun.elapsed().as_secs(), seconds);
            assert!(!is_available(&breaker));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_takes_nothing_is_read_and_given_nothing() {
        let (store, breaker) = breaker();
        assert!(breaker.ready().await.is_ok() && is_available(&breaker));
        let key = Key::new(LOOKED_AT).unwrap();
        assert!(store.read(&key, 0..9).await.is_err(), "nothing stays");
        for kind in [ErrorKind::Full, ErrorKind::Denied, ErrorKind::Other] {
            store.fault_on_every_write(Fault::Fail(kind));
            assert_eq!(put(&breaker, "x").await.unwrap_err().kind(), kind);
            assert!(!is_available(&breaker) && breaker.ready().await.is_err());
            for _ in 0..20 {
                assert!(breaker.read(&key, 0..9).await.is_err());
            }
            assert_eq!(puts_until_out(&breaker).await, 2);
            assert_eq!(locked(&breaker.state).refused, Some(b"content".len()));
            let error = put(&breaker, "x").await.unwrap_err().to_string();
            assert!(error.starts_with("not asked: "), "{error}");
            let read = breaker.read(&key, 0..9).await.unwrap_err();
            assert_eq!(read.kind(), ErrorKind::NotFound, "it is still read");
            assert!(breaker.ready().await.is_err());
            store.heal();
            sleep(RECOVERY).await;
            assert!(is_available(&breaker) && breaker.ready().await.is_ok());
        }
        store.fault_on_next_write(FULL);
        assert!(put(&breaker, "y").await.is_err() && !is_available(&breaker));
        assert!(put(&breaker, "y").await.is_ok() && is_available(&breaker));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_is_not_looked_up() {
        let (store, breaker) = breaker();
        for _ in 0..100 {
            assert!(breaker.ready().await.is_ok());
            sleep(PAUSE / 10).await;
        }
        // Each look stores and removes.
        assert_eq!(store.writes(), 20);
        // A store that fails has not answered.
        store.fault_on_every_write(DOWN);
        sleep(PAUSE).await;
        assert!(breaker.ready().await.is_err());
        store.heal();
        assert!(breaker.ready().await.is_ok());
    }
}
