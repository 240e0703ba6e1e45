//! Sweeps that end anywhere, by an error or because their future is dropped, are harmless.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use offcut::backend::{Backend, Fs, Memory, PutOutcome};
use offcut::sweep::{Live, SweepPolicy};

use super::clocked::{Calls, Clock, Clocked};
use super::{DAY, HOUR, key, keys, quick};

/// Content that stays: live, named by live content in turn, or in use.
const STAYS: [(&str, &str); 5] = [
    ("live/trunc/a", "one"),
    ("live/clear/b-args", "memory:/other/trunc/c"),
    ("other/trunc/c", "named in turn"),
    ("young/trunc/d", "old"),
    ("young/meta/read-1", ""),
];
/// Content that goes.
const GOES: [(&str, &str); 4] = [
    ("idle/trunc/e", "two"),
    ("idle/meta/decided-0123456789abcdef-0", "{}"),
    ("idle/meta/decided-0123456789abcdef-1", "{}"),
    ("trunc/root", "three"),
];

async fn fill<B: Backend + Clone>(store: &Clocked<B>) {
    let put = async |(path, content): (&str, &'static str)| {
        let put = store.put(&key(path), content.into()).await;
        assert_eq!(put.unwrap(), PutOutcome::Stored);
    };
    for part in GOES {
        put(part).await;
        store.clock.turn(HOUR);
    }
    for part in &STAYS[..4] {
        put(*part).await;
    }
    store.clock.turn(30 * DAY);
    put(STAYS[4]).await;
}

async fn sweep<B: Backend + Clone>(
    store: &Clocked<B>,
) -> Result<offcut::sweep::SweepReport, offcut::sweep::SweepError> {
    let (live, policy) = (
        Live::new().text("live/trunc/a"),
        SweepPolicy::new().idle(3 * DAY).apply(),
    );
    offcut::sweep::sweep(&quick(store.clone()), &live, &policy, store.clock.now()).await
}

/// Checks that everything stays that must, and that records are still a row from its beginning. Then
/// sweeps to the end.
async fn check<B: Backend + Clone>(store: &Clocked<B>, after: &str) {
    let holds = async |path: &str| {
        let read = store.inner.read(&key(path), 0..99).await;
        read.map(|page| page.bytes)
    };
    for (path, content) in STAYS {
        let read = holds(path).await;
        let read = read.unwrap_or_else(|error| panic!("{path} after {after}: {error}"));
        assert_eq!(read, content, "{path} after {after}");
    }
    let [_, first, second, _] = GOES;
    assert!(
        holds(second.0).await.is_err() || holds(first.0).await.is_ok(),
        "records after {after}"
    );
    let report = sweep(store).await.unwrap();
    assert_eq!(report.failed, [], "after {after}");
    let all = keys(&store.inner).await;
    assert_eq!(
        all,
        STAYS.map(|(path, _)| path.to_owned()).into(),
        "after {after}"
    );
}

/// Makes every call of a sweep fail in turn, with all calls after it.
async fn fail_everywhere<B: Backend + Clone>(make: impl Fn() -> B) {
    for calls in 0.. {
        let store = Clocked::new(make(), &Clock::new());
        fill(&store).await;
        let failing = store.with_calls(Calls {
            left: Some(calls),
            ..Calls::default()
        });
        let swept = sweep(&failing).await;
        let before = keys(&store.inner).await.len();
        if let Err(error) = &swept {
            assert!(error.to_string().contains("nothing was swept"), "{error}");
            assert_eq!(before, STAYS.len() + GOES.len(), "{calls} calls");
        }
        check(&store, &format!("{calls} calls")).await;
        if swept.is_ok_and(|report| report.failed.is_empty()) {
            assert!(calls > 7, "{calls} calls are too few");
            break;
        }
        assert!(calls < 100, "a sweep of nine keys does not end");
    }
}

#[tokio::test]
async fn w5_a_sweep_that_fails_anywhere_loses_nothing() {
    fail_everywhere(Memory::new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn w5_a_sweep_that_fails_anywhere_loses_nothing_on_files() {
    let home = tempfile::tempdir().unwrap();
    let made = std::cell::Cell::new(0);
    fail_everywhere(|| {
        made.set(made.get() + 1);
        Fs::open(home.path().join(made.get().to_string()))
            .unwrap()
            .durable(made.get() % 2 == 0)
    })
    .await;
}

/// The future of a sweep is dropped at every point where it waits, before and after each call.
#[tokio::test]
async fn w5_a_sweep_that_is_dropped_anywhere_loses_nothing() {
    for polls in 0.. {
        let store = Clocked::new(Memory::new(), &Clock::new());
        fill(&store).await;
        let slow = store.with_calls(Calls {
            give_way: true,
            ..Calls::default()
        });
        let is_done = drop_after(polls, sweep(&slow));
        check(&store, &format!("{polls} polls")).await;
        if is_done {
            assert!(polls > 16, "{polls} polls are too few");
            break;
        }
        assert!(polls < 200, "a sweep of nine keys does not end");
    }
}

fn drop_after<T>(polls: usize, future: impl Future<Output = T>) -> bool {
    let mut future = pin!(future);
    (0..polls).any(|_| {
        matches!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(_)
        )
    })
}

/// Two sweeps have listed the same content. One removes it, an agent stores it again, and the other
/// goes on.
#[tokio::test]
async fn w5_a_sweep_that_stalls_removes_nothing_that_is_stored_meanwhile() {
    for polls in 0.. {
        let store = Clocked::new(Memory::new(), &Clock::new());
        fill(&store).await;
        let slow = store.with_calls(Calls {
            give_way: true,
            ..Calls::default()
        });
        let mut stalled = pin!(sweep(&slow));
        let waker = &mut Context::from_waker(Waker::noop());
        let is_done = (0..polls).any(|_| stalled.as_mut().poll(waker).is_ready());
        sweep(&store).await.unwrap();
        store.clock.turn(10 * DAY);
        for (path, _) in GOES {
            let put = store.put(&key(path), "stored again".into()).await;
            assert_eq!(put.unwrap(), PutOutcome::Stored);
        }
        if is_done {
            break;
        }
        stalled.await.unwrap();
        for (path, _) in GOES {
            let page = store.inner.read(&key(path), 0..99).await;
            assert_eq!(page.unwrap().bytes, "stored again", "{path}, {polls} polls");
        }
    }
}
