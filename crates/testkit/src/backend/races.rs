//! Clauses about simultaneous calls, and about calls that are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use offcut::backend::{Backend, ErrorKind, Key, PutOutcome};
use tokio::sync::Barrier;
use tokio::task::{JoinSet, yield_now};

use super::check::{
    ALL, THERE, abandon, assert_holds, check, equal, error_chain, fail_clause, joined, key, listed,
    noise, put, succeed, timeless, written,
};

pub(super) async fn one_of_many_puts_is_stored<B: Backend>(store: &Arc<B>) {
    const CLAUSE: &str = "create-only and atomic: concurrent calls";
    const TASKS: usize = 32;
    const LENGTH: usize = 64 * 1024;
    for round in 0..8 {
        let key = key(format!("race_{round}/call_1"));
        let same = round % 2 == 1;
        let content =
            move |task: usize| Bytes::from(vec![if same { 0 } else { task as u8 }; LENGTH]);
        let done = Arc::new(AtomicBool::new(false));
        let mut readers = JoinSet::new();
        for _ in 0..2 {
            let (store, key, done) = (Arc::clone(store), key.clone(), Arc::clone(&done));
            readers.spawn(async move {
                let mut seen: Option<Bytes> = None;
                while !done.load(Ordering::Relaxed) {
                    match store.read(&key, ALL).await {
                        Err(error) if error.kind() == ErrorKind::NotFound && seen.is_none() => {}
                        Err(error) => fail_clause(
                            CLAUSE,
                            format!("reading meanwhile failed: {}", error_chain(&error)),
                        ),
                        Ok(page) => {
                            let whole = page.total == LENGTH as u64 && page.bytes.len() == LENGTH;
                            let uniform = page.bytes.iter().all(|byte| *byte == page.bytes[0]);
                            check(whole && uniform, CLAUSE, || {
                                format!(
                                    "a part was read meanwhile: {} bytes of {}",
                                    page.bytes.len(),
                                    page.total
                                )
                            });
                            let first = seen.get_or_insert_with(|| page.bytes.clone());
                            check(*first == page.bytes, CLAUSE, || {
                                "content changed while it was read".into()
                            });
                        }
                    }
                    yield_now().await;
                }
            });
        }
        let start = Arc::new(Barrier::new(TASKS));
        let mut puts = JoinSet::new();
        for task in 0..TASKS {
            let (store, key, start) = (Arc::clone(store), key.clone(), Arc::clone(&start));
            puts.spawn(async move {
                if task % 4 != 0 {
                    start.wait().await;
                    return (
                        task,
                        succeed(store.put(&key, content(task)).await, CLAUSE, "a put"),
                    );
                }
                let mut writer = written(&store, &[content(task)], CLAUSE).await;
                start.wait().await;
                (task, succeed(writer.finish(&key).await, CLAUSE, "a writer"))
            });
        }
        let answers = joined(puts).await;
        done.store(true, Ordering::Relaxed);
        joined(readers).await;
        let of = |put: PutOutcome| {
            answers
                .iter()
                .filter(|(_, answer)| timeless(*answer) == put)
                .map(|(task, _)| *task)
                .collect::<Vec<_>>()
        };
        let (stored, there) = (of(PutOutcome::Stored), of(THERE));
        check(stored.len() <= 1, CLAUSE, || {
            format!(
                "{} of {TASKS} were told that their content is stored",
                stored.len()
            )
        });
        let right: Vec<_> = stored.into_iter().chain(there).collect();
        if same {
            equal(
                right.len(),
                TASKS,
                CLAUSE,
                "storing the same content, the number of those told that it is there",
            );
        } else {
            equal(
                right.len(),
                1,
                CLAUSE,
                "storing different content, the number of those told that theirs is there",
            );
        }
        assert_holds(store, &key, &content(right[0]), CLAUSE).await;
    }
}

pub(super) async fn a_dropped_put_is_all_or_nothing(store: &impl Backend) {
    const CLAUSE: &str = "atomic: a dropped put";
    let content = noise(1024 * 1024, 21);
    for polls in 0..6 {
        let key = key(format!("trunc/call_{polls}"));
        abandon(store.put(&key, content.clone()), polls).await;
        settles(store, &key, &content, CLAUSE).await;
    }
}

pub(super) async fn a_dropped_finish_is_all_or_nothing(store: &impl Backend) {
    const CLAUSE: &str = "atomic: a dropped finish";
    let content = noise(1024 * 1024, 22);
    for polls in 0..6 {
        let key = key(format!("trunc/call_{polls}"));
        let mut writer = written(
            store,
            &[content.slice(..1_000_000), content.slice(1_000_000..)],
            CLAUSE,
        )
        .await;
        abandon(writer.finish(&key), polls).await;
        drop(writer);
        settles(store, &key, &content, CLAUSE).await;
    }
}

/// Asserts that `key` holds all of `content` or nothing while a dropped call may still be running,
/// and that storing it again is safe.
async fn settles(store: &impl Backend, key: &Key, content: &Bytes, clause: &str) {
    let mut seen = false;
    for _ in 0..20 {
        match store.read(key, ALL).await {
            Err(error) if error.kind() == ErrorKind::NotFound && !seen => {}
            Err(error) => fail_clause(
                clause,
                format!("reading after it failed: {}", error_chain(&error)),
            ),
            Ok(page) => {
                seen = true;
                check(
                    page.total == content.len() as u64 && page.bytes == content,
                    clause,
                    || format!("it left {} bytes of {}", page.total, content.len()),
                );
            }
        }
        if let Some(bytes) = listed(store, clause).await.get(key) {
            equal(*bytes, content.len() as u64, clause, "listing after it");
        }
        yield_now().await;
    }
    let again = succeed(
        store.put(key, content.clone()).await,
        clause,
        "storing the same again",
    );
    check(again != PutOutcome::Taken, clause, || {
        "storing the same again finds the name taken".into()
    });
    assert_holds(store, key, content, clause).await;
    put(store, key, &"other".into(), PutOutcome::Taken, clause).await;
}
