//! Clauses about storing and reading, one call after the other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use offcut::backend::{Backend, PutOutcome};

use super::check::{
    THERE, assert_holds, check, equal, fail_clause, finish, is_not_found, key, listed, noise, put,
    stores, succeed, written,
};

/// Maximum difference between the clocks of a store and of this process.
const CLOCKS_DIFFER: Duration = Duration::from_secs(15 * 60);

pub(super) async fn stored_content_is_read(store: &impl Backend) {
    const CLAUSE: &str = "truthful: stored content can be read";
    let contents = [
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"\r\n\xff\xfe"),
        "呼叫🙂\u{feff}".into(),
        (0..=255).collect(),
        noise(64 * 1024 - 1, 1),
        noise(64 * 1024, 2),
        noise(64 * 1024 + 1, 3),
        noise(1024 * 1024, 4),
    ];
    for (number, content) in contents.iter().enumerate() {
        let key = key(format!("trunc/call_{number}"));
        stores(store, &key, content, CLAUSE).await;
        assert_holds(store, &key, content, CLAUSE).await;
    }
    for (number, content) in contents.iter().enumerate() {
        assert_holds(store, &key(format!("trunc/call_{number}")), content, CLAUSE).await;
    }
}

pub(super) async fn any_key_can_be_stored(store: &impl Backend) {
    const CLAUSE: &str = "every key can be stored";
    for path in [
        "a".to_owned(),
        "k".repeat(255),
        ["s"; 16].join("/"),
        ["d".repeat(224), "e".repeat(255)].join("/"),
        "-".into(),
    ] {
        let key = key(path);
        let content = Bytes::from(key.to_string());
        stores(store, &key, &content, CLAUSE).await;
        assert_holds(store, &key, &content, CLAUSE).await;
    }
}

pub(super) async fn ranges_are_cut_at_the_end(store: &impl Backend) {
    const CLAUSE: &str = "read: the range is cut at the end";
    let content = noise(300_000, 5);
    let (long, empty) = (key("trunc/long"), key("trunc/empty"));
    stores(store, &long, &content, CLAUSE).await;
    stores(store, &empty, &Bytes::new(), CLAUSE).await;
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
            let of = format!("reading {start}..{stop} of {} bytes", content.len());
            let page = succeed(
                store.read(key, Range { start, end: stop }).await,
                CLAUSE,
                &of,
            );
            equal(
                page.total,
                content.len() as u64,
                CLAUSE,
                &format!("{of}, the total"),
            );
            let cut =
                |at: u64| usize::try_from(at).map_or(content.len(), |at| at.min(content.len()));
            let (first, last) = (cut(start), cut(stop).max(cut(start)));
            check(page.bytes == content[first..last], CLAUSE, || {
                format!("{of} returned {} wrong bytes", page.bytes.len())
            });
        }
    }
}

pub(super) async fn nothing_is_not_found(store: &impl Backend) {
    const CLAUSE: &str = "read: not found if nothing is stored there";
    check(listed(store, CLAUSE).await.is_empty(), CLAUSE, || {
        "a new store lists content".into()
    });
    is_not_found(store, &key("trunc/call_1"), CLAUSE).await;
    stores(store, &key("trunc/call_1"), &"content".into(), CLAUSE).await;
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
        is_not_found(store, &key(path), CLAUSE).await;
    }
}

pub(super) async fn stored_content_never_changes(store: &impl Backend) {
    const CLAUSE: &str = "create-only";
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
        stores(store, &key, content, CLAUSE).await;
        for other in &contents {
            let should = if other == content {
                THERE
            } else {
                PutOutcome::Taken
            };
            put(store, &key, other, should, CLAUSE).await;
            assert_holds(store, &key, content, CLAUSE).await;
            let mut writer = written(store, std::slice::from_ref(other), CLAUSE).await;
            finish(&mut writer, &key, should, CLAUSE).await;
            assert_holds(store, &key, content, CLAUSE).await;
        }
    }
    // Differs in the last byte only.
    let mut other = contents[4].to_vec();
    *other.last_mut().expect("it is not empty") ^= 1;
    put(
        store,
        &key("trunc/call_4"),
        &other.into(),
        PutOutcome::Taken,
        CLAUSE,
    )
    .await;
    assert_holds(store, &key("trunc/call_4"), &contents[4], CLAUSE).await;
}

pub(super) async fn keys_that_differ_in_case_lose_nothing(store: &impl Backend) {
    const CLAUSE: &str = "create-only: keys that differ in case only";
    let pairs = [
        ("trunc/call_a", "trunc/CALL_A"),
        ("trunc/call_b", "TRUNC/call_b"),
    ];
    for (lower, upper) in pairs.map(|(lower, upper)| (key(lower), key(upper))) {
        let (first, second) = (Bytes::from("first"), Bytes::from("second"));
        stores(store, &lower, &first, CLAUSE).await;
        // In a store that does not tell them apart the name is taken.
        match succeed(store.put(&upper, second.clone()).await, CLAUSE, "a put") {
            PutOutcome::Stored => assert_holds(store, &upper, &second, CLAUSE).await,
            PutOutcome::Taken => {}
            PutOutcome::AlreadyThere { .. } => {
                fail_clause(CLAUSE, "other content is reported as already there")
            }
        }
        assert_holds(store, &lower, &first, CLAUSE).await;
    }
}

pub(super) async fn keys_within_keys_lose_nothing(store: &impl Backend) {
    const CLAUSE: &str = "create-only: a key that begins with another key and a slash";
    for (first, second) in
        [("x", "x/call_1"), ("y/z/call_1", "y/z")].map(|(first, second)| (key(first), key(second)))
    {
        stores(store, &first, &"first".into(), CLAUSE).await;
        // A store with directories can't have both. It may report that in any way, but must not
        // lose one.
        match store.put(&second, "second".into()).await {
            Ok(PutOutcome::Stored) => assert_holds(store, &second, &"second".into(), CLAUSE).await,
            Ok(PutOutcome::Taken) | Err(_) => {}
            Ok(PutOutcome::AlreadyThere { .. }) => {
                fail_clause(CLAUSE, "other content is reported as already there")
            }
        }
        assert_holds(store, &first, &"first".into(), CLAUSE).await;
    }
}

pub(super) async fn the_list_is_what_is_stored(store: &impl Backend) {
    const CLAUSE: &str = "list: all stored content";
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
        stores(store, &key, &noise(number, 23), CLAUSE).await;
        stored.insert(key, number as u64);
    }
    let writer = written(store, &[noise(100, 24)], CLAUSE).await;
    let is = listed(store, CLAUSE).await;
    drop(writer);
    let missing = stored.keys().filter(|key| !is.contains_key(key)).count();
    let foreign = is.keys().filter(|key| !stored.contains_key(key)).count();
    check(missing + foreign == 0, CLAUSE, || {
        format!("{missing} keys are missing from the list, {foreign} should not be in it")
    });
    check(is == stored, CLAUSE, || "sizes are wrong".into());
    // Dropping a stream half-way must not break later calls.
    let mut list = store.list();
    list.next().await;
    drop(list);
    equal(
        listed(store, CLAUSE).await.len(),
        stored.len(),
        CLAUSE,
        "listing a second time",
    );
}

pub(super) async fn stores_are_told_apart(one: &impl Backend, other: &impl Backend) {
    const CLAUSE: &str = "unique: a location has one content";
    let key = key("trunc/call_1");
    stores(one, &key, &noise(100, 48), CLAUSE).await;
    let is_same = one.locate(&key) == other.locate(&key) && one.store_id() == other.store_id();
    check(
        !is_same || other.read(&key, 0..1).await.is_ok(),
        CLAUSE,
        || {
            "two stores with content of their own have the same locations: show in each which store it is in, or return an id of its own from `store_id`".to_owned()
        },
    );
}

pub(super) async fn the_time_of_storing_is_told(store: &impl Backend) {
    const CLAUSE: &str = "stored_at: the time of storing, by the store's clock";
    let key = key("trunc/call_1");
    stores(store, &key, &noise(5_000, 47), CLAUSE).await;
    let now = store.now();
    let page = succeed(store.read(&key, 0..0).await, CLAUSE, "reading nothing");
    let later = succeed(store.read(&key, 0..0).await, CLAUSE, "reading nothing");
    check(page.stored_at == later.stored_at, CLAUSE, || {
        "two reads tell different times".to_owned()
    });
    let again = succeed(store.put(&key, noise(5_000, 47)).await, CLAUSE, "a put");
    let PutOutcome::AlreadyThere { stored_at: again } = again else {
        fail_clause(CLAUSE, format!("storing it again returned {again:?}"));
    };
    let entries: Vec<_> = store.list().collect().await;
    for entry in entries {
        let listed = succeed(entry, CLAUSE, "listing").stored_at;
        let told = [
            (page.stored_at, "a read"),
            (listed, "the list"),
            (again, "a second put"),
        ];
        for (stored_at, by) in told {
            let off = now.duration_since(stored_at);
            let off = off.unwrap_or_else(|error| error.duration());
            check(off < CLOCKS_DIFFER, CLAUSE, || {
                format!("{by} tells a time that is {} s off", off.as_secs())
            });
        }
    }
}
