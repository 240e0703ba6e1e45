//! Clauses about simultaneous calls, and about calls that are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use offcut::backend::{Backend, ErrorKind, Key, PutOutcome};
use tokio::sync::Barrier;
use tokio::task::{JoinSet, yield_now};

use super::check::{ALL, Clause, THERE, abandon, key, noise, timeless};

pub(super) async fn one_of_many_puts_is_stored(store: impl Backend) {
    let it = Clause::new(Arc::new(store), "create-only and atomic: concurrent calls");
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
            let (it, key, done) = (it.clone(), key.clone(), Arc::clone(&done));
            readers.spawn(async move {
                let mut seen: Option<Bytes> = None;
                while !done.load(Ordering::Relaxed) {
                    match it.store.read(&key, ALL).await {
                        Err(error) if error.kind() == ErrorKind::NotFound && seen.is_none() => {}
                        Err(error) => it.succeed(Err(error), "reading meanwhile"),
                        Ok(page) => {
                            let whole = page.total == LENGTH as u64 && page.bytes.len() == LENGTH;
                            let uniform = page.bytes.iter().all(|byte| *byte == page.bytes[0]);
                            let (length, total) = (page.bytes.len(), page.total);
                            it.check(
                                whole && uniform,
                                format_args!(
                                    "a part was read meanwhile: {length} bytes of {total}"
                                ),
                            );
                            let first = seen.get_or_insert_with(|| page.bytes.clone());
                            it.check(*first == page.bytes, "content changed while it was read");
                        }
                    }
                    yield_now().await;
                }
            });
        }
        let start = Arc::new(Barrier::new(TASKS));
        let mut puts = JoinSet::new();
        for task in 0..TASKS {
            let (it, key, start) = (it.clone(), key.clone(), Arc::clone(&start));
            puts.spawn(async move {
                if task % 4 != 0 {
                    start.wait().await;
                    let put = it.store.put(&key, content(task)).await;
                    return (task, it.succeed(put, "a put"));
                }
                let mut writer = it.written(&[content(task)]).await;
                start.wait().await;
                (task, it.succeed(writer.finish(&key).await, "a writer"))
            });
        }
        let answers = puts.join_all().await;
        done.store(true, Ordering::Relaxed);
        readers.join_all().await;
        let of = |put: PutOutcome| {
            answers
                .iter()
                .filter(|(_, answer)| timeless(*answer) == put)
                .map(|(task, _)| *task)
                .collect::<Vec<_>>()
        };
        let (stored, there) = (of(PutOutcome::Stored), of(THERE));
        let told = stored.len();
        it.check(
            told <= 1,
            format_args!("{told} of {TASKS} were told that their content is stored"),
        );
        let right: Vec<_> = stored.into_iter().chain(there).collect();
        let (should, kind) = if same {
            (TASKS, "the same")
        } else {
            (1, "different")
        };
        it.equal(
            right.len(),
            should,
            format_args!("storing {kind} content, the number of those told that theirs is there"),
        );
        it.holds(&key, &content(right[0])).await;
    }
}

pub(super) async fn a_dropped_put_is_all_or_nothing(store: impl Backend) {
    let it = Clause::new(store, "atomic: a dropped put");
    let content = noise(1024 * 1024, 21);
    for polls in 0..6 {
        let key = key(format!("trunc/call_{polls}"));
        abandon(it.store.put(&key, content.clone()), polls).await;
        settles(&it, &key, &content).await;
    }
}

pub(super) async fn a_dropped_finish_is_all_or_nothing(store: impl Backend) {
    let it = Clause::new(store, "atomic: a dropped finish");
    let content = noise(1024 * 1024, 22);
    for polls in 0..6 {
        let key = key(format!("trunc/call_{polls}"));
        let mut writer = it
            .written(&[content.slice(..1_000_000), content.slice(1_000_000..)])
            .await;
        abandon(writer.finish(&key), polls).await;
        drop(writer);
        settles(&it, &key, &content).await;
    }
}

/// Asserts that `key` holds all of `content` or nothing while a dropped call may still be running,
/// and that storing it again is safe.
async fn settles(it: &Clause<impl Backend>, key: &Key, content: &Bytes) {
    let mut seen = false;
    for _ in 0..20 {
        match it.store.read(key, ALL).await {
            Err(error) if error.kind() == ErrorKind::NotFound && !seen => {}
            Err(error) => it.succeed(Err(error), "reading after it"),
            Ok(page) => {
                seen = true;
                it.check(
                    page.total == content.len() as u64 && page.bytes == content,
                    format_args!("it left {} bytes of {}", page.total, content.len()),
                );
            }
        }
        if let Some(bytes) = it.listed().await.get(key) {
            it.equal(*bytes, content.len() as u64, "listing after it");
        }
        yield_now().await;
    }
    let again = it.store.put(key, content.clone()).await;
    let again = it.succeed(again, "storing the same again");
    it.check(
        again != PutOutcome::Taken,
        "storing the same again finds the name taken",
    );
    it.holds(key, content).await;
    it.put(key, &"other".into(), PutOutcome::Taken).await;
}
