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

use hyper::Method;
use offcut::backend::{Backend, ErrorKind, Key, PutOutcome};
use offcut::sweep::{Live, SweepError, SweepPolicy};
use offcut::{TokenCounter, ToolReduction};

use server::{Fault, Server, noise};

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

fn key(path: &str) -> Key {
    Key::new(path).unwrap()
}

fn apply() -> SweepPolicy {
    SweepPolicy::new().unreferenced().apply()
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
    assert!(
        month.moved > 50 && month.removed > 50 && month.checked > 500,
        "{month:?}"
    );
    assert_eq!(server.buckets().overwrites(), Vec::<String>::new());
}

/// Content too long for one request is uploaded in parts, and so is its copy.
#[tokio::test(flavor = "multi_thread")]
async fn long_content_is_moved_and_brought_back() {
    let server = Server::start().await;
    let store = server.open("agents");
    let content = noise(9 << 20, 1);
    let text: String = content
        .iter()
        .map(|byte| char::from(byte % 64 + 32))
        .collect();
    let call = common::call("call_1", "grep");
    let shown = quick(store.clone())
        .truncate(&call, text.clone())
        .await
        .unwrap();
    let location = shown.report.decisions[0].locations[0].clone();
    let report = offcut::sweep::sweep(&quick(store.clone()), &Live::new(), &apply(), later(2))
        .await
        .unwrap();
    assert_eq!((report.moved.count, report.failed.len()), (1, 0));
    let name = store.resolve(location.as_str()).unwrap();
    assert_eq!(
        store.read(&name, 0..1).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let is = quick(store.clone())
        .read_original(&location)
        .await
        .unwrap()
        .unwrap();
    assert!(is == text.as_bytes());
    assert!(store.read(&name, 0..1).await.is_ok(), "it is back");
    assert_eq!(server.buckets().uploads().1, 0, "no upload is left open");
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
        for method in [Method::PUT, Method::GET, Method::HEAD, Method::DELETE] {
            for nth in 1..4 {
                let server = Server::start().await;
                let store = server.open_impatient("agents");
                for path in [
                    "trunc/live",
                    "trunc/dead",
                    "swept/trunc/back",
                    "swept/trunc/gone",
                ] {
                    assert_eq!(
                        store.put(&key(path), noise(5_000, 7)).await.unwrap(),
                        PutOutcome::Stored
                    );
                }
                let live = Live::new().text("trunc/live trunc/back");
                server.fault(&method, nth, fault);
                let swept =
                    offcut::sweep::sweep(&quick(store.clone()), &live, &apply(), later(2)).await;
                server.heal();
                let what = format!("{fault:?} at {method} {nth}: {swept:?}");
                for days in [4, 6, 8] {
                    match offcut::sweep::sweep(&quick(store.clone()), &live, &apply(), later(days))
                        .await
                    {
                        Ok(report) => assert_eq!(report.failed, [], "{what}"),
                        // A lease that could not be released.
                        Err(SweepError::Held { .. }) => panic!("{what}: days later"),
                        Err(error) => panic!("{what}: {error:?}"),
                    }
                    for path in ["trunc/live", "trunc/back"] {
                        let location = store.locate(&key(path));
                        let is = quick(store.clone()).read_original(&location).await.unwrap();
                        assert!(is.unwrap() == noise(5_000, 7), "{path} after {what}");
                    }
                }
                let left: Vec<_> = server.buckets().objects().into_keys().collect();
                assert_eq!(left, ["agents/trunc/back", "agents/trunc/live"], "{what}");
            }
        }
    }
}

/// Content that could not be uploaded is in a directory of this machine, which is swept with the
/// store.
#[tokio::test(flavor = "multi_thread")]
async fn the_spool_is_swept_too() {
    let server = Server::start().await;
    let store = server.open("agents");
    let spool = store.spool().unwrap();
    spool
        .put(&key("s1/trunc/call_1"), noise(5_000, 8))
        .await
        .unwrap();
    let named = spool.locate(&key("s1/trunc/call_2"));
    spool
        .put(&key("s1/trunc/call_2"), noise(5_000, 9))
        .await
        .unwrap();
    let report = offcut::sweep::sweep(
        &quick(store.clone()),
        &Live::new().location(&named),
        &apply(),
        later(2),
    )
    .await
    .unwrap();
    assert_eq!((report.live.count, report.moved.count), (1, 1));
    assert!(
        spool
            .read(&key("s1/swept/trunc/call_1"), 0..1)
            .await
            .is_ok()
    );
}
