//! Clauses about the needs of a sweep: removing and tidying up.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use offcut::backend::{Backend, ErrorKind, Key, PutOutcome};
use tokio::task::JoinSet;

use super::check::{Clause, abandon, key, noise};

/// A time before which everything was stored.
fn later(it: &Clause<impl Backend>) -> SystemTime {
    it.store.now() + Duration::from_secs(60 * 60)
}

/// Returns whether the store can be swept at all.
pub(super) async fn can_remove(store: impl Backend) -> bool {
    let it = Clause::new(store, "remove: a missing key counts as removed");
    match it.store.remove(&key("trunc/nothing"), later(&it)).await {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::Unsupported => false,
        Err(error) => it.succeed(Err(error), "removing a missing key"),
    }
}

async fn remove(it: &Clause<impl Backend>, key: &Key) {
    let removed = it.store.remove(key, later(it)).await;
    it.succeed(removed, format_args!("removing `{key}`"));
}

pub(super) async fn what_is_removed_is_gone(store: impl Backend) {
    let it = Clause::new(store, "removed whole");
    let (gone, stays) = (key("s-1/trunc/call_1"), key("s-1/trunc/call_2"));
    let (content, other) = (noise(100_000, 41), noise(1_000, 42));
    it.stores(&gone, &content).await;
    it.stores(&stays, &content).await;
    for _ in 0..2 {
        remove(&it, &gone).await;
        it.is_not_found(&gone).await;
        it.check(!it.listed().await.contains_key(&gone), "it is still listed");
    }
    it.holds(&stays, &content).await;
    it.stores(&gone, &other).await;
    it.holds(&gone, &other).await;
    // Removes the last key of a folder, then uses the folder again.
    for key in [&gone, &stays] {
        remove(&it, key).await;
    }
    it.equal(
        it.listed().await.len(),
        0,
        "listing after everything is removed",
    );
    it.stores(&stays, &content).await;
    let mut writer = it.written(std::slice::from_ref(&other)).await;
    remove(&it, &stays).await;
    it.finish(&mut writer, &gone, PutOutcome::Stored).await;
    it.holds(&gone, &other).await;
}

pub(super) async fn what_is_newer_stays(store: impl Backend) {
    let it = Clause::new(store, "removed only when old");
    let key = key("s-1/trunc/call_1");
    let content = noise(5_000, 43);
    let before = it.store.now() - Duration::from_secs(60 * 60);
    it.stores(&key, &content).await;
    for time in [before, SystemTime::UNIX_EPOCH] {
        it.succeed(it.store.remove(&key, time).await, "removing");
        it.holds(&key, &content).await;
    }
}

pub(super) async fn tidying_keeps_what_is_stored(store: impl Backend) {
    let it = Clause::new(store, "tidy: stored content stays");
    let (there, named) = (key("trunc/call_1"), key("trunc/call_2"));
    let content = noise(5_000, 48);
    it.stores(&there, &content).await;
    let mut writer = it.written(std::slice::from_ref(&content)).await;
    it.succeed(it.store.tidy(SystemTime::UNIX_EPOCH).await, "tidying");
    it.finish(&mut writer, &named, PutOutcome::Stored).await;
    it.succeed(it.store.tidy(later(&it)).await, "tidying");
    it.holds(&there, &content).await;
    it.holds(&named, &content).await;
}

pub(super) async fn a_dropped_removal_is_all_or_nothing(store: impl Backend) {
    let it = Clause::new(store, "atomic: a dropped removal");
    let content = noise(1024 * 1024, 49);
    for polls in 0..6 {
        let (gone, stays) = (
            key(format!("trunc/call_{polls}")),
            key(format!("trunc/call_{polls}_stays")),
        );
        for key in [&gone, &stays] {
            it.stores(key, &content).await;
        }
        abandon(it.store.remove(&gone, later(&it)), polls).await;
        // A dropped call may still be running, so both outcomes are allowed.
        if it.store.read(&gone, 0..0).await.is_ok() {
            remove(&it, &gone).await;
        }
        it.is_not_found(&gone).await;
        it.holds(&stays, &content).await;
    }
}

/// A folder is removed with its last key while others store in it.
pub(super) async fn storing_where_something_is_removed_is_safe(store: impl Backend) {
    let it = Clause::new(Arc::new(store), "removed whole: concurrent calls");
    let mut tasks = JoinSet::new();
    for task in 0..8u64 {
        let it = it.clone();
        tasks.spawn(async move {
            let content = noise(1_000, task);
            for round in 0..8 {
                let key = key(format!("s-1/trunc/call_{task}_{round}"));
                it.stores(&key, &content).await;
                it.holds(&key, &content).await;
                remove(&it, &key).await;
            }
            it.stores(&key(format!("s-1/trunc/call_{task}")), &content)
                .await;
        });
    }
    tasks.join_all().await;
    it.equal(it.listed().await.len(), 8, "listing, the number of keys");
}
