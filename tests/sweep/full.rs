//! Sweeps of a store without space, and what they report about space.

use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use offcut::backend::{
    Backend, BackendError, Entry, Key, Location, Memory, PutOutcome, ReadRange, Writer,
};
use offcut::sweep::{Live, SweepPolicy};

use super::clocked::{Calls, Clock, Clocked};
use super::{DAY, HOUR, contents, key, quick};

fn policy() -> SweepPolicy {
    SweepPolicy::new().unreferenced().apply()
}

async fn store_of(paths: &[&str]) -> Clocked<Memory> {
    let store = Clocked::new(Memory::named("t").unwrap(), &Clock::new());
    for path in paths {
        assert_eq!(
            store.put(&key(path), "content".into()).await.unwrap(),
            PutOutcome::Stored
        );
    }
    store
}

#[tokio::test]
async fn w4_waiting_content_is_removed_if_no_lease_can_be_written() {
    let store = store_of(&[
        "trunc/old",
        "swept/trunc/gone",
        "swept/trunc/live",
        "trunc/back",
        "swept/trunc/back",
    ])
    .await;
    store.clock.turn(2 * DAY);
    store
        .put(&key("swept/trunc/young"), "content".into())
        .await
        .unwrap();
    let full = store.with_calls(Calls {
        full: true,
        ..Calls::default()
    });
    let live = Live::new().text("trunc/live");
    let report = offcut::sweep::sweep(&quick(full), &live, &policy(), store.clock.now())
        .await
        .unwrap();
    assert_eq!(
        (
            report.removed.count,
            report.moved.count,
            report.brought_back.count
        ),
        (1, 0, 0)
    );
    assert!(report.without_lease);
    insta::assert_snapshot!(report.failed[0].location, @"memory://t/swept/lease-1");
    insta::assert_snapshot!(report.failed[0].error, @"the lease of this sweep can't be written, so nothing was moved or brought back; only content whose grace had passed was removed: no space is left");
    assert_eq!(report.failed.len(), 1);
    let left: Vec<_> = contents(&store.inner).await.into_keys().collect();
    assert_eq!(
        left,
        [
            "swept/trunc/back",
            "swept/trunc/live",
            "swept/trunc/young",
            "trunc/back",
            "trunc/old"
        ]
    );
    // W5: each content is counted in exactly one sum.
    assert_eq!(
        report.live.count + report.kept.count + report.young.count + report.waiting.count,
        5,
        "{report:?}"
    );
    // There is space again: the next sweep continues.
    let report = offcut::sweep::sweep(&quick(store.clone()), &live, &policy(), store.clock.now())
        .await
        .unwrap();
    assert_eq!(
        (
            report.failed.len(),
            report.moved.count,
            report.without_lease
        ),
        (0, 1, false)
    );
}

#[tokio::test]
async fn w4_one_store_without_a_lease_does_not_stop_the_others() {
    let full = store_of(&["trunc/a", "swept/trunc/b"]).await;
    let other = Clocked::new(Memory::named("other").unwrap(), &full.clock);
    other.put(&key("trunc/a"), "content".into()).await.unwrap();
    full.clock.turn(2 * DAY);
    let full = full.with_calls(Calls {
        full: true,
        ..Calls::default()
    });
    let builder = offcut::ToolReduction::builder()
        .backend(full.clone())
        .max_length_for_trunc(1_500)
        .preview_length(200);
    let reduction = builder
        .tool("grep", offcut::ToolPolicy::new().backend(other.clone()))
        .build()
        .unwrap();
    let report = offcut::sweep::sweep(&reduction, &Live::new(), &policy(), full.clock.now())
        .await
        .unwrap();
    assert_eq!(
        (
            report.removed.count,
            report.moved.count,
            report.failed.len()
        ),
        (1, 1, 1),
        "{report:?}"
    );
}

#[tokio::test]
async fn w5_the_report_says_when_space_will_be_free() {
    let store = store_of(&["trunc/a", "trunc/b"]).await;
    store.clock.turn(2 * DAY);
    let begun = store.clock.now();
    let sweep = async |live: &str, policy: SweepPolicy| {
        offcut::sweep::sweep(
            &quick(store.clone()),
            &Live::new().text(live),
            &policy,
            store.clock.now(),
        )
        .await
        .unwrap()
    };
    let would = sweep("trunc/b", SweepPolicy::new().unreferenced()).await;
    assert_eq!(
        (would.moved_free_at, would.waiting_free_at),
        (Some(begun + DAY), None)
    );
    let report = sweep("trunc/b", policy()).await;
    assert_eq!(
        (
            report.moved.count,
            report.moved_free_at,
            report.waiting_free_at
        ),
        (1, Some(begun + DAY), None)
    );
    store.clock.turn(2 * HOUR);
    let report = sweep("", policy()).await;
    assert_eq!(report.moved_free_at, Some(begun + DAY + 2 * HOUR));
    assert_eq!(report.waiting_free_at, Some(begun + DAY), "the first of it");
    let json = serde_json::to_value(&report).unwrap();
    let seconds = (begun + DAY)
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    assert_eq!(json["waiting_free_at"], seconds);
    store.clock.turn(22 * HOUR);
    let report = sweep("", policy()).await;
    assert_eq!(
        (
            report.removed.count,
            report.moved_free_at,
            report.waiting_free_at
        ),
        (1, None, Some(begun + DAY + 2 * HOUR))
    );
}

/// A store that reports the largest possible length for all its content.
#[derive(Clone, Debug)]
struct Endless(Memory);

#[async_trait]
impl Backend for Endless {
    fn locate(&self, key: &Key) -> Location {
        self.0.locate(key)
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        self.0.resolve(location)
    }

    async fn put(&self, key: &Key, content: Bytes) -> Result<PutOutcome, BackendError> {
        self.0.put(key, content).await
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        self.0.writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        self.0.read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        self.0
            .list()
            .map(|entry| {
                entry.map(|entry| Entry {
                    bytes: u64::MAX,
                    ..entry
                })
            })
            .boxed()
    }

    async fn remove(&self, key: &Key) -> Result<(), BackendError> {
        self.0.remove(key).await
    }
}

#[tokio::test]
async fn w5_sums_of_lengths_saturate() {
    let store = Endless(Memory::new());
    for path in [
        "trunc/a",
        "trunc/b",
        "trunc/c",
        "swept/trunc/c",
        "trunc/live",
        "clear/live",
        "swept/clear/d",
    ] {
        store.put(&key(path), path.to_owned().into()).await.unwrap();
    }
    let live = Live::new().text("trunc/live clear/live");
    for policy in [
        SweepPolicy::new().quota_bytes(u64::MAX),
        SweepPolicy::new().quota_bytes(0),
        SweepPolicy::new().unreferenced(),
    ] {
        for policy in [policy.clone(), policy.apply()] {
            let report = offcut::sweep::sweep(
                &quick(store.clone()),
                &live,
                &policy,
                SystemTime::now() + 2 * DAY,
            )
            .await
            .unwrap();
            assert_eq!(
                (report.live.count, report.live.bytes),
                (2, u64::MAX),
                "{report:?}"
            );
        }
    }
}

#[tokio::test]
async fn w5_a_quota_holds_for_any_amount() {
    let store = Endless(Memory::new());
    for path in ["trunc/a", "trunc/b", "trunc/c"] {
        store.put(&key(path), path.to_owned().into()).await.unwrap();
    }
    let policy = SweepPolicy::new().quota_bytes(u64::MAX);
    let report = offcut::sweep::sweep(
        &quick(store),
        &Live::new(),
        &policy,
        SystemTime::now() + 2 * DAY,
    )
    .await
    .unwrap();
    assert_eq!(
        (report.moved.count, report.kept.count),
        (2, 1),
        "one of them is as much as the quota"
    );
}
