//! Sweeping over the S3 protocol.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what helps tests is part of them"
)]

#[path = "../../../tests/sweep/clocked.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod clocked;
#[path = "../../../tests/sweep/month.rs"]
mod month;
#[path = "server/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

mod common {
    use offcut::ToolCall;

    pub(crate) fn call(id: &str, tool: &str) -> ToolCall {
        ToolCall::new(id, tool, "{}")
    }
}

use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use hyper::Method;
use offcut::backend::{Backend, ErrorKind, PutOutcome};
use offcut::sweep::{Live, SweepPolicy};
use offcut::{TokenCounter, ToolReduction};

use server::{Fault, Server, digest, key, noise};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn quick(store: impl Backend) -> ToolReduction {
    let builder = ToolReduction::builder()
        .backend(store)
        .token_counter(TokenCounter::Estimate);
    builder
        .max_length_for_trunc(1_500)
        .preview_length(200)
        .max_tokens_for_clear(1_500)
        .build()
        .unwrap()
}

fn apply() -> SweepPolicy {
    SweepPolicy::new().idle(SweepPolicy::LEAST_IDLE).apply()
}

/// The store has a clock of its own, so a sweep comes from the future.
fn later(days: u32) -> SystemTime {
    SystemTime::now() + days * DAY
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_of_sessions_leaves_nothing_dangling() {
    let server = Server::start().await;
    let month = month::live_through(server.open("agents"), 20).await;
    eprintln!("{month:?}");
    assert!(month.removed > 50 && month.checked > 500, "{month:?}");
    assert!(month.most_bytes < month.stored_bytes / 2, "{month:?}");
    assert_eq!(server.buckets().overwrites(), Vec::<String>::new());
}

/// Each request of a sweep meets each fault, and the next sweep does the rest.
#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_network_lose_nothing() {
    for fault in [
        Fault::Refuse(403),
        Fault::Refuse(503),
        Fault::ApplyThenRefuse(503),
        Fault::ApplyThenDisconnect,
    ] {
        for method in [Method::GET, Method::HEAD, Method::DELETE] {
            for nth in 1..4 {
                let server = Server::start().await;
                let store = server.open_impatient("agents");
                for path in ["a/trunc/live", "b/trunc/dead", "c/trunc/dead"] {
                    assert_eq!(
                        store.put(&key(path), noise(5_000, 7)).await.unwrap(),
                        PutOutcome::Stored
                    );
                }
                let live = Live::new().text("a/trunc/live");
                server.fault(&method, nth, fault);
                let sweep = async || {
                    let reduction = quick(store.clone());
                    offcut::sweep::sweep(&reduction, &live, &apply(), later(3)).await
                };
                let swept = sweep().await;
                server.heal();
                let what = format!("{fault:?} at {method} {nth}: {swept:?}");
                assert_eq!(sweep().await.unwrap().failed, [], "{what}");
                let left: Vec<_> = server.buckets().objects().into_keys().collect();
                assert_eq!(left, ["agents/a/trunc/live"], "{what}");
            }
        }
    }
}

/// Two sweeps have listed the same, and an agent has stored under a name that one has removed.
#[tokio::test(flavor = "multi_thread")]
async fn w5_what_is_newer_than_the_sweep_knows_is_not_removed() {
    let server = Server::start().await;
    let store = server.open("agents");
    let call = key("s1/trunc/call_1");
    store.put(&call, noise(5_000, 7)).await.unwrap();
    store.remove(&call, later(1)).await.unwrap();
    store.put(&call, noise(5_000, 8)).await.unwrap();
    store.remove(&call, SystemTime::now() - DAY).await.unwrap();
    let page = store.read(&call, 0..5_000).await.unwrap();
    assert_eq!(page.bytes, noise(5_000, 8));
}

/// Content that could not be uploaded is swept with the store: both hold parts of one conversation.
#[tokio::test(flavor = "multi_thread")]
async fn the_spool_is_swept_too() {
    let server = Server::start().await;
    let store = server.open("agents");
    store.check().await.unwrap();
    let digest = digest(&noise(5_000, 8));
    let spooled = |session| key(&format!("{session}/trunc/call_1-{digest}"));
    server.fault_always(&Method::PUT, Fault::Refuse(403));
    for session in ["s1", "s2"] {
        let mut writer = store.writer().await.unwrap();
        writer.write(noise(5_000, 8)).await.unwrap();
        let put = writer.finish(&spooled(session)).await.unwrap();
        assert_eq!(put, PutOutcome::Stored);
    }
    server.heal();
    for path in ["s1/trunc/call_2", "s2/trunc/call_2"] {
        store.put(&key(path), noise(5_000, 9)).await.unwrap();
    }
    // Another machine has stored one of them too.
    let name = format!("agents/{}", spooled("s1"));
    server.buckets().insert(&name, noise(5_000, 8));
    // A process was killed.
    std::mem::forget(store.writer().await.unwrap());

    let live = Live::new().location(&store.locate(&spooled("s2")));
    let report = offcut::sweep::sweep(&quick(store.clone()), &live, &apply(), later(3))
        .await
        .unwrap();
    assert_eq!((report.live.count, report.removed.count), (2, 2));
    assert_eq!(report.tidied, 1);
    let left: Vec<_> = store
        .list()
        .map_ok(|entry| entry.key)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(left, [spooled("s2"), key("s2/trunc/call_2")]);
    let read = store.read(&spooled("s1"), 0..1).await.unwrap_err();
    assert_eq!(read.kind(), ErrorKind::NotFound);
}
