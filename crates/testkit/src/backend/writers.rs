//! Clauses about writers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use offcut::backend::range::indexes_within;
use offcut::backend::{Backend, PutOutcome, Writer};

use super::check::{Clause, THERE, abandon, key, noise};

pub(super) async fn a_writer_stores_its_chunks(store: impl Backend) {
    let it = Clause::new(store, "writer: stores what was written");
    let content = noise(200_000, 8);
    for (number, size) in [1, 7, 4096, 65_536, 70_000, 200_000]
        .into_iter()
        .enumerate()
    {
        // One byte at a time is slow, so only a part of the content is written.
        let content = content.slice(..content.len().min(size * 2000));
        let mut chunks: Vec<_> = content.chunks(size).map(Bytes::copy_from_slice).collect();
        chunks.insert(chunks.len() / 2, Bytes::new());
        let key = key(format!("trunc/call_{number}"));
        let mut writer = it.written(&chunks).await;
        it.finish(&mut writer, &key, PutOutcome::Stored).await;
        it.holds(&key, &content).await;
        // A put finds the content that a writer stored.
        it.put(&key, &content, THERE).await;
    }
    let mut writer = it.written(&[]).await;
    let empty = key("trunc/empty");
    it.finish(&mut writer, &empty, PutOutcome::Stored).await;
    it.holds(&empty, &Bytes::new()).await;
}

pub(super) async fn a_writer_reads_what_it_has(store: impl Backend) {
    let it = Clause::new(store, "writer: reads what was written so far");
    let content = noise(200_000, 21);
    let read = async |writer: &mut Box<dyn Writer>, range: Range<u64>, of: usize| {
        let bytes = it.succeed(writer.read(range.clone()).await, "reading from a writer");
        let (length, should) = (bytes.len(), content.slice(indexes_within(&range, of)));
        it.check(
            bytes == should,
            format_args!("{range:?} of {of} bytes returned {length} bytes that were not written"),
        );
    };
    let mut writer = it.written(&[]).await;
    read(&mut writer, 0..10, 0).await;
    let mut from = 0;
    for of in [100, 100_000, 200_000] {
        it.write(&mut writer, &content.slice(from..of)).await;
        from = of;
        for range in [0..u64::MAX, 50..70, 0..0, 99_990..100_010, 300_000..400_000] {
            read(&mut writer, range, of).await;
        }
    }
    let (taken, free) = (key("trunc/call_1"), key("trunc/call_2"));
    it.stores(&taken, &"other".into()).await;
    it.finish(&mut writer, &taken, PutOutcome::Taken).await;
    read(&mut writer, 100..150_000, 200_000).await;
    it.finish(&mut writer, &free, PutOutcome::Stored).await;
    it.holds(&free, &content).await;
}

pub(super) async fn a_writer_is_unseen_until_it_finishes(store: impl Backend) {
    let it = Clause::new(store, "writer: nothing is visible before it is named");
    let chunks = [noise(100_000, 9), noise(10, 10), noise(100_000, 11)];
    let key = key("trunc/call_1");
    let mut writer = it.writer().await;
    for chunk in &chunks {
        it.write(&mut writer, chunk).await;
        let listed = it.listed().await;
        it.check(listed.is_empty(), format_args!("{listed:?} is listed"));
        it.is_not_found(&key).await;
    }
    it.finish(&mut writer, &key, PutOutcome::Stored).await;
    it.holds(&key, &chunks.concat().into()).await;
    let listed = it.listed().await;
    it.equal(
        listed,
        BTreeMap::from([(key, 200_010)]),
        "listing after it was named",
    );
}

pub(super) async fn a_writer_finds_a_second_name(store: impl Backend) {
    let it = Clause::new(
        store,
        "writer: unless it has stored, it can finish under another key",
    );
    let (first, second) = (noise(100_000, 12), noise(100_000, 13));
    let keys: Vec<_> = (0..4)
        .map(|number| key(format!("trunc/call_{number}")))
        .collect();
    it.stores(&keys[0], &first).await;
    it.stores(&keys[1], &first.slice(1..)).await;
    it.stores(&keys[2], &second).await;
    let mut writer = it
        .written(&[second.slice(..70_000), second.slice(70_000..)])
        .await;
    for (key, should) in keys.iter().zip([
        PutOutcome::Taken,
        PutOutcome::Taken,
        THERE,
        PutOutcome::Stored,
    ]) {
        it.finish(&mut writer, key, should).await;
    }
    drop(writer);
    it.holds(&keys[0], &first).await;
    it.holds(&keys[1], &first.slice(1..)).await;
    it.holds(&keys[2], &second).await;
    it.holds(&keys[3], &second).await;
}

pub(super) async fn a_finished_writer_changes_nothing(store: impl Backend) {
    const FINISHES: &str =
        "create-only: a writer that has finished changes nothing, with a second `finish`";
    const WRITES: &str =
        "create-only: a writer that has finished changes nothing, with a `write` after it";
    let store = Arc::new(store);
    let content = noise(100_000, 14);
    let other = key("trunc/call_2");
    for (number, clause) in [FINISHES, WRITES].into_iter().enumerate() {
        let it = Clause::new(Arc::clone(&store), clause);
        let key = key(format!("trunc/stored_{number}"));
        let mut writer = it.written(std::slice::from_ref(&content)).await;
        it.succeed(writer.finish(&key).await, "finishing");
        if clause == WRITES {
            let more = writer.write(noise(100_000, 15)).await;
            it.check(
                more.is_err(),
                "`write` succeeded after `finish` had stored the content; it must fail",
            );
            it.holds(&key, &content).await;
        }
        let named = writer.finish(&other).await;
        it.check(
            named.is_err(),
            format_args!(
                "`finish` had stored the content, and a second one, under another key, returned {named:?}; it must fail"
            ),
        );
        drop(writer);
        it.is_not_found(&other).await;
        it.holds(&key, &content).await;
    }
}

pub(super) async fn a_dropped_write_is_the_last(store: impl Backend) {
    let it = Clause::new(store, "writer: after a dropped write it stores nothing");
    for polls in 1..5 {
        let key = key(format!("trunc/call_{polls}"));
        // Long enough for stores that write in the background.
        let mut writer = it.written(&[noise(2_000_000, 50)]).await;
        if abandon(writer.write(noise(2_000_000, 51)), polls).await {
            continue;
        }
        let more = writer.write(noise(10, 52)).await;
        it.check(more.is_err(), "a `write` was dropped before it ended, and the next one succeeded; it must fail, since what the first one wrote is unknown");
        let named = writer.finish(&key).await;
        it.check(
            named.is_err(),
            format_args!(
                "`finish` returned {named:?}; it must fail, since what was written is unknown"
            ),
        );
        drop(writer);
        it.is_not_found(&key).await;
    }
}

pub(super) async fn a_dropped_writer_leaves_nothing(store: impl Backend) {
    let it = Clause::new(
        store,
        "writer: dropped before it is named, it leaves nothing",
    );
    it.stores(&key("trunc/call_1"), &"content".into()).await;
    drop(it.written(&[]).await);
    drop(it.written(&[noise(100_000, 16), noise(100_000, 17)]).await);
    let mut writer = it.written(&[noise(100_000, 18)]).await;
    let taken = key("trunc/call_1");
    it.finish(&mut writer, &taken, PutOutcome::Taken).await;
    drop(writer);
    for polls in 0..4 {
        let mut writer = it.written(&[noise(100_000, 19)]).await;
        abandon(writer.write(noise(1_000_000, 20)), polls).await;
        drop(writer);
        abandon(it.store.writer(), polls).await;
    }
    let listed = it.listed().await;
    it.equal(
        listed,
        BTreeMap::from([(key("trunc/call_1"), 7)]),
        "listing",
    );
}
