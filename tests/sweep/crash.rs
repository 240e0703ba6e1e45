//! Sweeps that end anywhere, by an error or because their future is dropped, are harmless.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::SystemTime;

use offcut::backend::{Backend, Fs, Key, Memory, PutOutcome};
use offcut::sweep::{Live, SweepPolicy};

use super::clocked::{Calls, Clock, Clocked};
use super::{DAY, contents, key, quick, read};

/// Stores one key in each state that a sweep can meet, live or not, all of them old.
async fn every_state<B: Backend + Clone>(store: &Clocked<B>) -> Vec<(String, &'static str)> {
    let put = async |path: String, content: &'static str| {
        assert_eq!(
            store.put(&key(&path), content.into()).await.unwrap(),
            PutOutcome::Stored
        );
    };
    let mut means = Vec::new();
    for owner in ["live", "dead"] {
        for (name, there, swept) in [
            ("there", Some("one"), None),
            ("swept", None, Some("two")),
            ("brought-back", Some("three"), Some("three")),
            ("junk", Some("four"), Some("five")),
        ] {
            if let Some(content) = there {
                put(format!("{owner}/trunc/{name}"), content).await;
            }
            if let Some(content) = swept {
                put(format!("{owner}/swept/trunc/{name}"), content).await;
            }
            means.push((format!("{owner}/trunc/{name}"), swept.or(there).unwrap()));
        }
    }
    store.clock.turn(3 * DAY);
    means
}

fn live(means: &[(String, &'static str)]) -> Live {
    let named = means.iter().filter(|(path, _)| path.starts_with("live"));
    named.fold(Live::new(), |live, (path, _)| live.text(path))
}

fn policy() -> SweepPolicy {
    SweepPolicy::new().unreferenced().apply()
}

/// Checks that everything live reads as it must, as does unnamed content that one sweep can only
/// have moved, and that the rest is whole if it is there at all.
async fn check<B: Backend + Clone>(
    store: &Clocked<B>,
    means: &[(String, &'static str)],
    after: &str,
) {
    check_of("", store, means, after).await;
}

/// Checks only paths that begin with `prefix`. Reading brings content back, so what is to go must
/// not be read.
async fn check_of<B: Backend + Clone>(
    prefix: &str,
    store: &Clocked<B>,
    means: &[(String, &'static str)],
    after: &str,
) {
    for (path, content) in means.iter().filter(|(path, _)| path.starts_with(prefix)) {
        match read(store, path).await {
            Ok(is) => {
                // An unnamed key may read as the new content that was stored while its old content
                // was swept.
                let junk = path == "dead/trunc/junk" && is == "four";
                assert!(junk || is == *content, "{path} after {after}: {is:?}");
            }
            Err(error) => {
                let may_be_gone = path.starts_with("dead") && path != "dead/trunc/there";
                assert!(may_be_gone, "{path} after {after}: {error}");
            }
        }
    }
}

/// Sweeps to the end, and checks that only what is live is there.
async fn finish<B: Backend + Clone>(
    store: &Clocked<B>,
    means: &[(String, &'static str)],
    after: &str,
) {
    for _ in 0..6 {
        store.clock.turn(2 * DAY);
        let report = offcut::sweep::sweep(
            &quick(store.clone()),
            &live(means),
            &policy(),
            store.clock.now(),
        )
        .await
        .unwrap();
        assert_eq!(report.failed, [], "after {after}");
        check_of("live", store, means, after).await;
    }
    let all: Vec<String> = contents(&store.inner).await.into_keys().collect();
    let named = means
        .iter()
        .map(|(path, _)| path.clone())
        .filter(|path| path.starts_with("live"));
    let mut should: Vec<_> = named.collect();
    should.sort();
    assert_eq!(all, should, "after {after}");
}

/// Makes every call of a sweep fail in turn, with all calls after it.
async fn fail_everywhere<B: Backend + Clone>(make: impl Fn() -> B) {
    for calls in 0.. {
        let store = Clocked::new(make(), &Clock::new());
        let means = every_state(&store).await;
        let failing = store.with_calls(Calls {
            left: Some(calls),
            ..Calls::default()
        });
        let swept =
            offcut::sweep::sweep(&quick(failing), &live(&means), &policy(), store.clock.now())
                .await;
        let after = format!("{calls} calls");
        check(&store, &means, &after).await;
        finish(&store, &means, &after).await;
        if swept.is_ok_and(|report| report.failed.is_empty()) && calls > 30 {
            break;
        }
        assert!(calls < 200, "a sweep of eight keys does not end");
    }
}

#[tokio::test]
async fn a_sweep_that_fails_anywhere_loses_nothing() {
    fail_everywhere(Memory::new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_fails_anywhere_loses_nothing_on_files() {
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
async fn a_sweep_that_is_dropped_anywhere_loses_nothing() {
    for polls in 0.. {
        let store = Clocked::new(Memory::new(), &Clock::new());
        let means = every_state(&store).await;
        let slow = store.with_calls(Calls {
            give_way: true,
            ..Calls::default()
        });
        let is_done = drop_after(polls, async {
            offcut::sweep::sweep(&quick(slow), &live(&means), &policy(), store.clock.now()).await
        });
        let after = format!("{polls} polls");
        check(&store, &means, &after).await;
        finish(&store, &means, &after).await;
        if is_done {
            break;
        }
        assert!(polls < 500, "a sweep of eight keys does not end");
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

#[tokio::test]
async fn a_store_that_cannot_be_listed_is_not_touched() {
    // If an entry can't be listed, it may hold content that is live.
    let store = Clocked::new(Memory::new(), &Clock::new());
    store
        .put(
            &Key::new("clear/call_1").unwrap(),
            "names memory:/trunc/call_2".into(),
        )
        .await
        .unwrap();
    store
        .put(&Key::new("trunc/call_2").unwrap(), "text".into())
        .await
        .unwrap();
    store.clock.turn(2 * DAY);
    // Probe and lease, then the read of live content that may name more fails.
    let failing = store.with_calls(Calls {
        left: Some(2),
        ..Calls::default()
    });
    let error = offcut::sweep::sweep(
        &quick(failing),
        &Live::new().text("clear/call_1"),
        &policy(),
        SystemTime::now(),
    )
    .await
    .unwrap_err();
    assert!(error.to_string().contains("nothing was swept"), "{error}");
    assert!(read(&store, "trunc/call_2").await.is_ok());
}
