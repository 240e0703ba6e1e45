//! Clauses about storing and reading, one call after the other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::StreamExt;
use offcut::backend::{Backend, Key, PutOutcome};

use super::check::{Clause, THERE, key, noise};

/// Maximum difference between the clocks of a store and of this process.
const CLOCKS_DIFFER: Duration = Duration::from_secs(15 * 60);

pub(super) async fn stored_content_is_read(store: impl Backend) {
    let it = Clause::new(store, "truthful: stored content can be read");
    let contents = [
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"\r\n\xff\xfe"),
        "呼叫🙂\u{feff}".into(),
        (0..=255).collect(),
        noise(64 * 1024 - 1, 1),
        noise(64 * 1024, 2),
        noise(64 * 1024 + 1, 3),
        noise(5 * 1024 * 1024 + 1, 4),
    ];
    for (number, content) in contents.iter().enumerate() {
        let key = key(format!("trunc/call_{number}"));
        it.stores(&key, content).await;
        it.holds(&key, content).await;
    }
    for (number, content) in contents.iter().enumerate() {
        it.holds(&key(format!("trunc/call_{number}")), content)
            .await;
    }
}

pub(super) async fn any_key_can_be_stored(store: impl Backend) {
    let it = Clause::new(store, "every key can be stored");
    for path in [
        "a".to_owned(),
        "k".repeat(Key::MAX_SEGMENT),
        ["s"; 16].join("/"),
        ["d".repeat(224), "e".repeat(Key::MAX_SEGMENT)].join("/"),
        "-".into(),
    ] {
        let key = key(path);
        let content = Bytes::from(key.to_string());
        it.stores(&key, &content).await;
        it.holds(&key, &content).await;
    }
}

pub(super) async fn ranges_are_cut_at_the_end(store: impl Backend) {
    let it = Clause::new(store, "read: the range is cut at the end");
    let content = noise(300_000, 5);
    let (long, empty) = (key("trunc/long"), key("trunc/empty"));
    it.stores(&long, &content).await;
    it.stores(&empty, &Bytes::new()).await;
    let end = content.len() as u64;
    let ranges = [
        (0, 0),
        (0, 1),
        (1, 2),
        (0, end),
        (0, end + 1),
        (end - 1, end),
        (end - 1, end + 9),
        (end, end),
        (end, end + 1),
        (end + 1, end + 2),
        (u64::MAX - 1, u64::MAX),
        (u64::MAX, u64::MAX),
        (1000, 70_000),
        (65_535, 65_537),
        (1, u64::MAX),
        (5, 3),
        (end + 2, end),
    ];
    for (start, stop) in ranges {
        for (key, content) in [(&long, &content), (&empty, &Bytes::new())] {
            let length = content.len();
            let page = it.read(key, Range { start, end: stop }).await;
            let of = format!("reading {start}..{stop} of {length} bytes");
            it.equal(page.total, length as u64, format_args!("{of}, the total"));
            let cut = |at: u64| usize::try_from(at).map_or(length, |at| at.min(length));
            let (first, last) = (cut(start), cut(stop).max(cut(start)));
            it.check(
                page.bytes == content[first..last],
                format_args!("{of} returned {} wrong bytes", page.bytes.len()),
            );
        }
    }
}

pub(super) async fn nothing_is_not_found(store: impl Backend) {
    let it = Clause::new(store, "read: not found if nothing is stored there");
    let is_empty = it.listed().await.is_empty();
    it.check(is_empty, "a new store lists content");
    it.is_not_found(&key("trunc/call_1")).await;
    it.stores(&key("trunc/call_1"), &"content".into()).await;
    for path in [
        "call_1",
        "trunc",
        "trunc/call_",
        "trunc/call_11",
        "trunc/call_1/x",
        "trunc/call_1.txt",
        "clear/call_1",
        "x/trunc/call_1",
    ] {
        it.is_not_found(&key(path)).await;
    }
}

pub(super) async fn stored_content_never_changes(store: impl Backend) {
    let it = Clause::new(store, "create-only");
    let contents = [
        Bytes::new(),
        "a".into(),
        "b".into(),
        "ab".into(),
        noise(100_000, 6),
        noise(100_000, 7),
    ];
    for (number, content) in contents.iter().enumerate() {
        let key = key(format!("trunc/call_{number}"));
        it.stores(&key, content).await;
        for other in &contents {
            let should = if other == content {
                THERE
            } else {
                PutOutcome::Taken
            };
            it.put(&key, other, should).await;
            it.holds(&key, content).await;
            let mut writer = it.written(std::slice::from_ref(other)).await;
            it.finish(&mut writer, &key, should).await;
            it.holds(&key, content).await;
        }
    }
    // Differs in the last byte only.
    let mut other = contents[4].to_vec();
    *other.last_mut().expect("it is not empty") ^= 1;
    it.put(&key("trunc/call_4"), &other.into(), PutOutcome::Taken)
        .await;
    it.holds(&key("trunc/call_4"), &contents[4]).await;
}

pub(super) async fn keys_that_differ_in_case_lose_nothing(store: impl Backend) {
    let it = Clause::new(store, "create-only: keys that differ in case only");
    let pairs = [
        ("trunc/call_a", "trunc/CALL_A"),
        ("trunc/call_b", "TRUNC/call_b"),
    ];
    for (lower, upper) in pairs.map(|(lower, upper)| (key(lower), key(upper))) {
        let (first, second) = (Bytes::from("first"), Bytes::from("second"));
        it.stores(&lower, &first).await;
        // In a store that does not tell them apart the name is taken.
        match it.succeed(it.store.put(&upper, second.clone()).await, "a put") {
            PutOutcome::Stored => it.holds(&upper, &second).await,
            PutOutcome::Taken => {}
            PutOutcome::AlreadyThere { .. } => {
                it.fail("other content is reported as already there")
            }
        }
        it.holds(&lower, &first).await;
    }
}

pub(super) async fn keys_within_keys_lose_nothing(store: impl Backend) {
    let it = Clause::new(
        store,
        "create-only: a key that begins with another key and a slash",
    );
    for (first, second) in
        [("x", "x/call_1"), ("y/z/call_1", "y/z")].map(|(first, second)| (key(first), key(second)))
    {
        it.stores(&first, &"first".into()).await;
        // A store with directories can't have both. It may report that in any way, but must not
        // lose one.
        match it.store.put(&second, "second".into()).await {
            Ok(PutOutcome::Stored) => it.holds(&second, &"second".into()).await,
            Ok(PutOutcome::Taken) | Err(_) => {}
            Ok(PutOutcome::AlreadyThere { .. }) => {
                it.fail("other content is reported as already there")
            }
        }
        it.holds(&first, &"first".into()).await;
    }
}

pub(super) async fn the_list_is_what_is_stored(store: impl Backend) {
    let it = Clause::new(store, "list: all stored content");
    let mut stored = BTreeMap::new();
    // A list longer than a page of most stores would take too long. 600 exceeds a page of our own
    // test server.
    for number in 0..600_usize {
        let path = match number % 3 {
            0 => format!("trunc/call_{number}"),
            1 => format!("s-{}/clear/call_{number}", number % 7),
            _ => format!("top_{number}"),
        };
        let key = key(path);
        it.stores(&key, &noise(number, 23)).await;
        stored.insert(key, number as u64);
    }
    let writer = it.written(&[noise(100, 24)]).await;
    let is = it.listed().await;
    drop(writer);
    let missing = stored.keys().filter(|key| !is.contains_key(key)).count();
    let foreign = is.keys().filter(|key| !stored.contains_key(key)).count();
    it.check(
        missing + foreign == 0,
        format_args!("{missing} keys are missing from the list, {foreign} should not be in it"),
    );
    it.check(is == stored, "sizes are wrong");
    // Dropping a stream half-way must not break later calls.
    let mut list = it.store.list();
    list.next().await;
    drop(list);
    it.equal(
        it.listed().await.len(),
        stored.len(),
        "listing a second time",
    );
}

pub(super) async fn stores_are_told_apart<B: Backend>(one: B, other: B) {
    let it = Clause::new(one, "unique: a location has one content");
    let key = key("trunc/call_1");
    it.stores(&key, &noise(100, 48)).await;
    let is_same =
        it.store.locate(&key) == other.locate(&key) && it.store.store_id() == other.store_id();
    it.check(
        !is_same || other.read(&key, 0..1).await.is_ok(), "two stores with content of their own have the same locations: show in each which store it is in, or return an id of its own from `store_id`",
    );
}

pub(super) async fn the_time_of_storing_is_told(store: impl Backend) {
    let it = Clause::new(
        store,
        "stored_at: the time of storing, by the store's clock",
    );
    let (put, written, content) = (key("trunc/call_1"), key("trunc/call_2"), noise(5_000, 47));
    it.stores(&put, &content).await;
    let mut writer = it.written(std::slice::from_ref(&content)).await;
    it.finish(&mut writer, &written, PutOutcome::Stored).await;
    let now = it.store.now();
    let first = [it.read(&put, 0..0).await, it.read(&written, 0..0).await];
    // The real clock's time, whatever the runtime's does.
    _ = tokio::task::spawn_blocking(|| thread::sleep(2 * A_SECOND)).await;
    for (key, first) in [&put, &written].into_iter().zip(first) {
        let read = it.read(key, 0..0).await.stored_at;
        let again = it.succeed(it.store.put(key, content.clone()).await, "a put");
        let PutOutcome::AlreadyThere { stored_at: again } = again else {
            it.fail(format_args!("storing it again returned {again:?}"));
        };
        let entries: Vec<_> = it.store.list().collect().await;
        let entries = entries
            .into_iter()
            .map(|entry| it.succeed(entry, "listing"));
        let listed = entries.filter(|entry| entry.key == *key);
        let listed = listed.map(|entry| (entry.stored_at, "the list"));
        for (stored_at, by) in [(read, "a read"), (again, "a second put")]
            .into_iter()
            .chain(listed)
        {
            let off = difference(now, stored_at);
            it.check(
                off < CLOCKS_DIFFER,
                format_args!("{by} tells a time that is {} s off", off.as_secs()),
            );
            // Some lists tell parts of a second, where reads tell whole ones.
            it.check(
                difference(first.stored_at, stored_at) <= A_SECOND,
                format_args!("{by} tells another time than a read did"),
            );
        }
    }
}

const A_SECOND: Duration = Duration::from_millis(1_100);

fn difference(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other)
        .unwrap_or_else(|error| error.duration())
}
