//! Clauses about the needs of a sweep: removing and tidying up.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use offcut::backend::{Backend, ErrorKind, Key, PutOutcome};
use tokio::task::JoinSet;

use super::check::{
    abandon, assert_holds, check, equal, error_chain, fail_clause, finish, is_not_found, joined,
    key, listed, noise, stores, succeed, written,
};

/// A time before which everything was stored.
fn later(store: &impl Backend) -> SystemTime {
    store.now() + Duration::from_secs(60 * 60)
}

/// Returns whether the store can be swept at all.
pub(super) async fn can_remove(store: &impl Backend) -> bool {
    const CLAUSE: &str = "remove: a missing key counts as removed";
    match store.remove(&key("trunc/nothing"), later(store)).await {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::Unsupported => false,
        Err(error) => fail_clause(
            CLAUSE,
            format!("removing a missing key failed: {}", error_chain(&error)),
        ),
    }
}

async fn remove(store: &impl Backend, key: &Key, clause: &str) {
    succeed(
        store.remove(key, later(store)).await,
        clause,
        &format!("removing `{key}`"),
    );
}

pub(super) async fn what_is_removed_is_gone(store: &impl Backend) {
    const CLAUSE: &str = "removed whole";
    let (gone, stays) = (key("s-1/trunc/call_1"), key("s-1/trunc/call_2"));
    let (content, other) = (noise(100_000, 41), noise(1_000, 42));
    stores(store, &gone, &content, CLAUSE).await;
    stores(store, &stays, &content, CLAUSE).await;
    for _ in 0..2 {
        remove(store, &gone, CLAUSE).await;
        is_not_found(store, &gone, CLAUSE).await;
        check(
            !listed(store, CLAUSE).await.contains_key(&gone),
            CLAUSE,
            || "it is still listed".into(),
        );
    }
    assert_holds(store, &stays, &content, CLAUSE).await;
    stores(store, &gone, &other, CLAUSE).await;
    assert_holds(store, &gone, &other, CLAUSE).await;
    // Removes the last key of a folder, then uses the folder again.
    for key in [&gone, &stays] {
        remove(store, key, CLAUSE).await;
    }
    equal(
        listed(store, CLAUSE).await.len(),
        0,
        CLAUSE,
        "listing after everything is removed",
    );
    stores(store, &stays, &content, CLAUSE).await;
    let mut writer = written(store, std::slice::from_ref(&other), CLAUSE).await;
    remove(store, &stays, CLAUSE).await;
    finish(&mut writer, &gone, PutOutcome::Stored, CLAUSE).await;
    assert_holds(store, &gone, &other, CLAUSE).await;
}

pub(super) async fn what_is_newer_stays(store: &impl Backend) {
    const CLAUSE: &str = "removed only when old";
    let key = key("s-1/trunc/call_1");
    let content = noise(5_000, 43);
    let before = store.now() - Duration::from_secs(60 * 60);
    stores(store, &key, &content, CLAUSE).await;
    for time in [before, SystemTime::UNIX_EPOCH] {
        succeed(store.remove(&key, time).await, CLAUSE, "removing");
        assert_holds(store, &key, &content, CLAUSE).await;
    }
}

pub(super) async fn tidying_keeps_what_is_stored(store: &impl Backend) {
    const CLAUSE: &str = "tidy: stored content stays";
    let (there, named) = (key("trunc/call_1"), key("trunc/call_2"));
    let content = noise(5_000, 48);
    stores(store, &there, &content, CLAUSE).await;
    let mut writer = written(store, std::slice::from_ref(&content), CLAUSE).await;
    succeed(store.tidy(SystemTime::UNIX_EPOCH).await, CLAUSE, "tidying");
    finish(&mut writer, &named, PutOutcome::Stored, CLAUSE).await;
    succeed(
        store
            .tidy(SystemTime::now() + Duration::from_secs(3600))
            .await,
        CLAUSE,
        "tidying",
    );
    assert_holds(store, &there, &content, CLAUSE).await;
    assert_holds(store, &named, &content, CLAUSE).await;
}

pub(super) async fn a_dropped_removal_is_all_or_nothing(store: &impl Backend) {
    const CLAUSE: &str = "atomic: a dropped removal";
    let content = noise(1024 * 1024, 49);
    for polls in 0..6 {
        let (gone, stays) = (
            key(format!("trunc/call_{polls}")),
            key(format!("trunc/call_{polls}_stays")),
        );
        for key in [&gone, &stays] {
            stores(store, key, &content, CLAUSE).await;
        }
        abandon(store.remove(&gone, later(store)), polls).await;
        // A dropped call may still be running, so both outcomes are allowed.
        if store.read(&gone, 0..0).await.is_ok() {
            remove(store, &gone, CLAUSE).await;
        }
        is_not_found(store, &gone, CLAUSE).await;
        assert_holds(store, &stays, &content, CLAUSE).await;
    }
}

/// A folder is removed with its last key while others store in it.
pub(super) async fn storing_where_something_is_removed_is_safe<B: Backend>(store: &Arc<B>) {
    const CLAUSE: &str = "removed whole: concurrent calls";
    let mut tasks = JoinSet::new();
    for task in 0..8u64 {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let content = noise(1_000, task);
            for round in 0..8 {
                let key = key(format!("s-1/trunc/call_{task}_{round}"));
                stores(&*store, &key, &content, CLAUSE).await;
                assert_holds(&*store, &key, &content, CLAUSE).await;
                remove(&*store, &key, CLAUSE).await;
            }
            stores(
                &*store,
                &key(format!("s-1/trunc/call_{task}")),
                &content,
                CLAUSE,
            )
            .await;
        });
    }
    joined(tasks).await;
    equal(
        listed(&**store, CLAUSE).await.len(),
        8,
        CLAUSE,
        "listing, the number of keys",
    );
}
