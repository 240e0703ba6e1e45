//! Clauses about the needs of a sweep: removing, copying and tidying up.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::StreamExt;
use offcut::backend::{Backend, Entry, ErrorKind, Key, PutOutcome};
use tokio::task::JoinSet;

use super::check::{
    abandon, assert_holds, check, equal, error_chain, fail_clause, is_not_found, key, listed,
    noise, put, succeed, written,
};

/// Returns whether the store can be swept at all.
pub(super) async fn can_remove(store: &impl Backend) -> bool {
    const CLAUSE: &str = "remove: a missing key counts as removed";
    if !store.can_be_swept() {
        return false;
    }
    match store.remove(&key("trunc/nothing")).await {
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
        store.remove(key).await,
        clause,
        &format!("removing `{key}`"),
    );
}

async fn copy(store: &impl Backend, from: &Key, to: &Key, should: PutOutcome, clause: &str) {
    let is = succeed(
        store.copy(from, to).await,
        clause,
        &format!("copying `{from}` to `{to}`"),
    );
    equal(is, should, clause, "a copy");
}

pub(super) async fn what_is_removed_is_gone(store: &impl Backend) {
    const CLAUSE: &str = "removed whole";
    let (gone, stays) = (key("s-1/trunc/call_1"), key("s-1/trunc/call_2"));
    let (content, other) = (noise(100_000, 41), noise(1_000, 42));
    put(store, &gone, &content, PutOutcome::Stored, CLAUSE).await;
    put(store, &stays, &content, PutOutcome::Stored, CLAUSE).await;
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
    put(store, &gone, &other, PutOutcome::Stored, CLAUSE).await;
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
    put(store, &stays, &content, PutOutcome::Stored, CLAUSE).await;
    let mut writer = written(store, std::slice::from_ref(&other), CLAUSE).await;
    remove(store, &stays, CLAUSE).await;
    equal(
        succeed(writer.finish(&gone).await, CLAUSE, "a writer"),
        PutOutcome::Stored,
        CLAUSE,
        "a writer",
    );
    assert_holds(store, &gone, &other, CLAUSE).await;
}

pub(super) async fn a_copy_outlives_its_original(store: &impl Backend) {
    const CLAUSE: &str = "copy: removing one leaves the other";
    for (number, content) in [Bytes::new(), noise(1, 43), noise(3 * 1024 * 1024, 44)]
        .iter()
        .enumerate()
    {
        let (from, to) = (
            key(format!("trunc/call_{number}")),
            key(format!("swept/trunc/call_{number}")),
        );
        put(store, &from, content, PutOutcome::Stored, CLAUSE).await;
        copy(store, &from, &to, PutOutcome::Stored, CLAUSE).await;
        assert_holds(store, &from, content, CLAUSE).await;
        assert_holds(store, &to, content, CLAUSE).await;
        remove(store, &from, CLAUSE).await;
        is_not_found(store, &from, CLAUSE).await;
        assert_holds(store, &to, content, CLAUSE).await;
        copy(store, &to, &from, PutOutcome::Stored, CLAUSE).await;
        remove(store, &to, CLAUSE).await;
        assert_holds(store, &from, content, CLAUSE).await;
        equal(
            listed(store, CLAUSE).await.len(),
            number + 1,
            CLAUSE,
            "listing, the number of keys",
        );
    }
}

pub(super) async fn a_copy_overwrites_nothing(store: &impl Backend) {
    const CLAUSE: &str = "copy: create-only";
    let (from, to, third) = (
        key("trunc/call_1"),
        key("swept/trunc/call_1"),
        key("swept/trunc/call_3"),
    );
    let (content, other) = (noise(5_000, 45), noise(5_000, 46));
    put(store, &from, &content, PutOutcome::Stored, CLAUSE).await;
    put(store, &to, &other, PutOutcome::Stored, CLAUSE).await;
    copy(store, &from, &to, PutOutcome::Taken, CLAUSE).await;
    assert_holds(store, &to, &other, CLAUSE).await;
    put(store, &third, &content, PutOutcome::Stored, CLAUSE).await;
    copy(store, &from, &third, PutOutcome::AlreadyThere, CLAUSE).await;
    match store
        .copy(&key("trunc/nothing"), &key("swept/trunc/nothing"))
        .await
    {
        Ok(put) => fail_clause(CLAUSE, format!("copying a missing key returned {put:?}")),
        Err(error) => check(error.kind() == ErrorKind::NotFound, CLAUSE, || {
            format!(
                "copying a missing key failed with {}, but should fail as not found",
                error_chain(&error)
            )
        }),
    }
    is_not_found(store, &key("swept/trunc/nothing"), CLAUSE).await;
}

async fn stored_at(store: &impl Backend, key: &Key, clause: &str) -> SystemTime {
    let entries: Vec<_> = store.list().collect().await;
    let entries = entries
        .into_iter()
        .map(|entry| succeed(entry, clause, "listing"));
    match entries.into_iter().find(|entry| entry.key == *key) {
        Some(Entry { stored_at, .. }) => stored_at,
        None => fail_clause(clause, format!("`{key}` is not listed")),
    }
}

/// Stores tell seconds apart, or less.
const A_MOMENT: Duration = Duration::from_millis(2_100);

pub(super) async fn a_copy_is_new(store: &impl Backend) {
    const CLAUSE: &str = "copy: it counts as stored now";
    let (from, to) = (key("trunc/call_1"), key("swept/trunc/call_1"));
    put(store, &from, &noise(5_000, 47), PutOutcome::Stored, CLAUSE).await;
    let before = stored_at(store, &from, CLAUSE).await;
    // Not tokio's time, which a test may have stopped: the store's clock must run.
    _ = tokio::task::spawn_blocking(|| std::thread::sleep(A_MOMENT)).await;
    copy(store, &from, &to, PutOutcome::Stored, CLAUSE).await;
    let after = stored_at(store, &to, CLAUSE).await;
    check(after > before, CLAUSE, || {
        "a copy is as old as its original: a sweep would remove it too early".into()
    });
}

pub(super) async fn tidying_keeps_what_is_stored(store: &impl Backend) {
    const CLAUSE: &str = "tidy: stored content stays";
    let (there, named) = (key("trunc/call_1"), key("trunc/call_2"));
    let content = noise(5_000, 48);
    put(store, &there, &content, PutOutcome::Stored, CLAUSE).await;
    let mut writer = written(store, std::slice::from_ref(&content), CLAUSE).await;
    succeed(store.tidy(SystemTime::UNIX_EPOCH).await, CLAUSE, "tidying");
    equal(
        succeed(writer.finish(&named).await, CLAUSE, "a writer"),
        PutOutcome::Stored,
        CLAUSE,
        "a writer",
    );
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

pub(super) async fn a_dropped_move_loses_nothing(store: &impl Backend) {
    const CLAUSE: &str = "atomic: a dropped copy or removal";
    let content = noise(1024 * 1024, 49);
    for polls in 0..6 {
        let (from, to) = (
            key(format!("trunc/call_{polls}")),
            key(format!("swept/trunc/call_{polls}")),
        );
        put(store, &from, &content, PutOutcome::Stored, CLAUSE).await;
        abandon(store.copy(&from, &to), polls).await;
        assert_holds(store, &from, &content, CLAUSE).await;
        // A dropped call may still be running, so both outcomes are allowed.
        let is = succeed(store.copy(&from, &to).await, CLAUSE, "copying again");
        check(is != PutOutcome::Taken, CLAUSE, || {
            "copying again finds the name taken".into()
        });
        assert_holds(store, &to, &content, CLAUSE).await;
        abandon(store.remove(&from), polls).await;
        assert_holds(store, &to, &content, CLAUSE).await;
        remove(store, &from, CLAUSE).await;
        is_not_found(store, &from, CLAUSE).await;
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
                put(&*store, &key, &content, PutOutcome::Stored, CLAUSE).await;
                assert_holds(&*store, &key, &content, CLAUSE).await;
                remove(&*store, &key, CLAUSE).await;
            }
            put(
                &*store,
                &key(format!("s-1/trunc/call_{task}")),
                &content,
                PutOutcome::Stored,
                CLAUSE,
            )
            .await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        if let Err(error) = done {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    equal(
        listed(&**store, CLAUSE).await.len(),
        8,
        CLAUSE,
        "listing, the number of keys",
    );
}
