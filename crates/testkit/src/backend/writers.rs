//! Clauses about writers.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use offcut::backend::{Backend, PutOutcome, Writer};

use super::check::{
    THERE, abandon, assert_holds, check, equal, finish, is_not_found, key, listed, noise, put,
    stores, succeed, written,
};

pub(super) async fn a_writer_stores_its_chunks(store: &impl Backend) {
    const CLAUSE: &str = "writer: stores what was written";
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
        let mut writer = written(store, &chunks, CLAUSE).await;
        finish(&mut writer, &key, PutOutcome::Stored, CLAUSE).await;
        assert_holds(store, &key, &content, CLAUSE).await;
        // A put finds the content that a writer stored.
        put(store, &key, &content, THERE, CLAUSE).await;
    }
    let mut writer = written(store, &[], CLAUSE).await;
    let empty = key("trunc/empty");
    finish(&mut writer, &empty, PutOutcome::Stored, CLAUSE).await;
    assert_holds(store, &empty, &Bytes::new(), CLAUSE).await;
}

pub(super) async fn a_writer_reads_what_it_has(store: &impl Backend) {
    const CLAUSE: &str = "writer: reads what was written so far";
    let content = noise(200_000, 21);
    let read = async |writer: &mut Box<dyn Writer>, range: Range<u64>, of: usize| {
        let bytes = succeed(
            writer.read(range.clone()).await,
            CLAUSE,
            "reading from a writer",
        );
        let (start, end) = (
            range.start.min(of as u64) as usize,
            range.end.min(of as u64) as usize,
        );
        let should = content.slice(start.min(end)..end);
        check(bytes == should, CLAUSE, || {
            format!(
                "{range:?} of {of} bytes returned {} bytes that were not written",
                bytes.len()
            )
        });
    };
    let mut writer = written(store, &[], CLAUSE).await;
    read(&mut writer, 0..10, 0).await;
    let mut from = 0;
    for of in [100, 100_000, 200_000] {
        succeed(
            writer.write(content.slice(from..of)).await,
            CLAUSE,
            "writing a chunk",
        );
        from = of;
        for range in [0..u64::MAX, 50..70, 0..0, 99_990..100_010, 300_000..400_000] {
            read(&mut writer, range, of).await;
        }
    }
    let (taken, free) = (key("trunc/call_1"), key("trunc/call_2"));
    stores(store, &taken, &"other".into(), CLAUSE).await;
    finish(&mut writer, &taken, PutOutcome::Taken, CLAUSE).await;
    read(&mut writer, 100..150_000, 200_000).await;
    finish(&mut writer, &free, PutOutcome::Stored, CLAUSE).await;
    assert_holds(store, &free, &content, CLAUSE).await;
}

pub(super) async fn a_writer_is_unseen_until_it_finishes(store: &impl Backend) {
    const CLAUSE: &str = "writer: nothing is visible before it is named";
    let chunks = [noise(100_000, 9), noise(10, 10), noise(100_000, 11)];
    let key = key("trunc/call_1");
    let mut writer = succeed(store.writer().await, CLAUSE, "opening a writer");
    for chunk in &chunks {
        succeed(writer.write(chunk.clone()).await, CLAUSE, "writing a chunk");
        let listed = listed(store, CLAUSE).await;
        check(listed.is_empty(), CLAUSE, || {
            format!("{listed:?} is listed")
        });
        is_not_found(store, &key, CLAUSE).await;
    }
    finish(&mut writer, &key, PutOutcome::Stored, CLAUSE).await;
    assert_holds(store, &key, &chunks.concat().into(), CLAUSE).await;
    let listed = listed(store, CLAUSE).await;
    equal(
        listed,
        BTreeMap::from([(key, 200_010)]),
        CLAUSE,
        "listing after it was named",
    );
}

pub(super) async fn a_writer_finds_a_second_name(store: &impl Backend) {
    const CLAUSE: &str = "writer: unless it has stored, it can finish under another key";
    let (first, second) = (noise(100_000, 12), noise(100_000, 13));
    let keys: Vec<_> = (0..4)
        .map(|number| key(format!("trunc/call_{number}")))
        .collect();
    stores(store, &keys[0], &first, CLAUSE).await;
    stores(store, &keys[1], &first.slice(1..), CLAUSE).await;
    stores(store, &keys[2], &second, CLAUSE).await;
    let mut writer = written(
        store,
        &[second.slice(..70_000), second.slice(70_000..)],
        CLAUSE,
    )
    .await;
    for (key, should) in keys.iter().zip([
        PutOutcome::Taken,
        PutOutcome::Taken,
        THERE,
        PutOutcome::Stored,
    ]) {
        finish(&mut writer, key, should, CLAUSE).await;
    }
    drop(writer);
    assert_holds(store, &keys[0], &first, CLAUSE).await;
    assert_holds(store, &keys[1], &first.slice(1..), CLAUSE).await;
    assert_holds(store, &keys[2], &second, CLAUSE).await;
    assert_holds(store, &keys[3], &second, CLAUSE).await;
}

pub(super) async fn a_finished_writer_changes_nothing(store: &impl Backend) {
    const FINISHES: &str =
        "create-only: a writer that has finished changes nothing, with a second `finish`";
    const WRITES: &str =
        "create-only: a writer that has finished changes nothing, with a `write` after it";
    let content = noise(100_000, 14);
    let other = key("trunc/call_2");
    for (number, clause) in [FINISHES, WRITES].into_iter().enumerate() {
        let key = key(format!("trunc/stored_{number}"));
        let mut writer = written(store, std::slice::from_ref(&content), clause).await;
        succeed(writer.finish(&key).await, clause, "finishing");
        if clause == WRITES {
            let more = writer.write(noise(100_000, 15)).await;
            check(more.is_err(), clause, || {
                "`write` succeeded after `finish` had stored the content; it must fail".into()
            });
            assert_holds(store, &key, &content, clause).await;
        }
        let named = writer.finish(&other).await;
        check(named.is_err(), clause, || {
            format!(
                "`finish` had stored the content, and a second one, under another key, returned {named:?}; it must fail"
            )
        });
        drop(writer);
        is_not_found(store, &other, clause).await;
        assert_holds(store, &key, &content, clause).await;
    }
}

pub(super) async fn a_dropped_write_is_the_last(store: &impl Backend) {
    const CLAUSE: &str = "writer: after a dropped write it stores nothing";
    for polls in 1..5 {
        let key = key(format!("trunc/call_{polls}"));
        // Long enough for stores that write in the background.
        let mut writer = written(store, &[noise(2_000_000, 50)], CLAUSE).await;
        if abandon(writer.write(noise(2_000_000, 51)), polls).await {
            continue;
        }
        let more = writer.write(noise(10, 52)).await;
        check(more.is_err(), CLAUSE, || {
            "a `write` was dropped before it ended, and the next one succeeded; it must fail, since what the first one wrote is unknown".into()
        });
        let named = writer.finish(&key).await;
        check(named.is_err(), CLAUSE, || {
            format!("`finish` returned {named:?}; it must fail, since what was written is unknown")
        });
        drop(writer);
        is_not_found(store, &key, CLAUSE).await;
    }
}

pub(super) async fn a_dropped_writer_leaves_nothing(store: &impl Backend) {
    const CLAUSE: &str = "writer: dropped before it is named, it leaves nothing";
    stores(store, &key("trunc/call_1"), &"content".into(), CLAUSE).await;
    drop(written(store, &[], CLAUSE).await);
    drop(written(store, &[noise(100_000, 16), noise(100_000, 17)], CLAUSE).await);
    let mut writer = written(store, &[noise(100_000, 18)], CLAUSE).await;
    let taken = key("trunc/call_1");
    finish(&mut writer, &taken, PutOutcome::Taken, CLAUSE).await;
    drop(writer);
    for polls in 0..4 {
        let mut writer = written(store, &[noise(100_000, 19)], CLAUSE).await;
        abandon(writer.write(noise(1_000_000, 20)), polls).await;
        drop(writer);
        abandon(store.writer(), polls).await;
    }
    let listed = listed(store, CLAUSE).await;
    equal(
        listed,
        BTreeMap::from([(key("trunc/call_1"), 7)]),
        CLAUSE,
        "listing",
    );
}
