//! The rules for what a sweep takes and leaves, one by one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use offcut::agent::Tool;
use offcut::backend::{
    Backend, BackendError, Entry, Key, Location, Memory, PutOutcome, ReadRange, Writer,
};
use offcut::format::{self, Message};
use offcut::sweep::{Live, SweepError, SweepPolicy, SweepReport};
use offcut::{Chunk, ToolCall, ToolOutput, ToolPolicy, ToolReduction};

use super::clocked::{Clock, Clocked};
use super::common::{call, lines};
use super::{DAY, HOUR, contents, key, quick, read};

fn store() -> Clocked<Memory> {
    Clocked::new(Memory::named("t").unwrap(), &Clock::new())
}

/// Truncates a result of `count` lines and returns its location.
async fn offload(reduction: &ToolReduction, id: &str, count: usize) -> Location {
    let shown = reduction
        .truncate(&call(id, "grep"), lines(count))
        .await
        .unwrap();
    shown.report.decisions[0].locations[0].clone()
}

pub(crate) async fn sweep(store: &Clocked<Memory>, live: &Live) -> SweepReport {
    let policy = SweepPolicy::new().unreferenced().apply();
    let report = offcut::sweep::sweep(&quick(store.clone()), live, &policy, store.clock.now())
        .await
        .unwrap();
    assert_eq!(report.failed, []);
    report
}

async fn keys(store: &Clocked<Memory>) -> BTreeSet<String> {
    contents(store).await.into_keys().collect()
}

async fn reads(reduction: &ToolReduction, location: &str) -> Result<String, String> {
    let arguments = serde_json::json!({"path": location}).to_string();
    let read = reduction
        .read_file_tool()
        .call(&ToolCall::new("r", "read_file", arguments))
        .await;
    let (parts, _) = read.map_err(|error| error.to_string())?.into_parts().await;
    Ok(super::common::text(&parts).to_owned())
}

/// A history with a long result for each of `ids`, as it is handed in.
fn history(ids: &[&str]) -> Vec<Message> {
    let rounds = ids.iter().flat_map(|id| {
        let call = call(id, "grep");
        let result = vec![lines(500).into()];
        [
            Message::calls(vec![call.clone()]),
            Message::tool(&call, result, false),
        ]
    });
    rounds.collect()
}

#[tokio::test]
async fn w7_records_in_use_keep_what_they_name_and_others_go() {
    let store = store();
    let live = Live::new();
    let reduce = async |ids: &[&str]| {
        let mut messages = history(ids);
        let session = quick(store.clone()).session("s1");
        session.reduce(&format::Plain, &mut messages).await.unwrap();
        messages
    };
    let records = async || {
        let keys = keys(&store).await;
        keys.iter()
            .filter(|key| key.contains("s1/swept/decided-"))
            .count()
    };
    reduce(&["call_1"]).await;
    store.clock.turn(20 * HOUR);
    let sent = reduce(&["call_1", "call_2"]).await;
    store.clock.turn(10 * HOUR);
    let report = sweep(&store, &live).await;
    assert_eq!((report.live.count, report.moved.count), (2, 0));
    assert_eq!(records().await, 2);
    assert_eq!(reduce(&["call_1", "call_2"]).await, sent);
    let by_name = Live::new().session("s1");
    store.clock.turn(20 * HOUR);
    assert_eq!(sweep(&store, &by_name).await.live.count, 2);
    assert_eq!(records().await, 2);
    let report = sweep(&store, &live).await;
    assert_eq!(
        (report.live.count, report.moved.count, report.removed.count),
        (0, 2, 2)
    );
    assert_eq!(records().await, 0);
    // The conversation goes on all the same.
    let again = reduce(&["call_1", "call_2"]).await;
    assert_eq!(again, sent);
    assert_eq!(records().await, 1);
}

/// The variant without records is a sweep that loses what a conversation in use shows.
#[tokio::test]
async fn w7_finds_records_that_keep_nothing() {
    let store = store();
    let session = quick(store.clone()).session("s1");
    let mut messages = history(&["call_1"]);
    session.reduce(&format::Plain, &mut messages).await.unwrap();
    for key in keys(&store).await {
        if key.contains("decided-") {
            store.remove(&Key::new(key).unwrap()).await.unwrap();
        }
    }
    store.clock.turn(30 * HOUR);
    assert_eq!(sweep(&store, &Live::new()).await.moved.count, 1);
}

#[tokio::test]
async fn unreferenced_content_is_removed_in_two_steps() {
    let store = store();
    let session = quick(store.clone()).session("s1");
    let kept = offload(&session, "call_1", 500).await;
    offload(&session, "call_2", 500).await;
    let live = Live::new().text(kept.as_str());
    store.clock.turn(23 * HOUR);
    assert_eq!(
        sweep(&store, &live).await.young.count,
        1,
        "within the grace"
    );
    store.clock.turn(HOUR);
    let report = sweep(&store, &live).await;
    assert_eq!(
        (report.live.count, report.moved.count, report.removed.count),
        (1, 1, 0)
    );
    assert_eq!(
        keys(&store).await,
        ["s1/swept/trunc/call_2", "s1/trunc/call_1"]
            .map(String::from)
            .into()
    );
    store.clock.turn(23 * HOUR);
    assert_eq!(sweep(&store, &live).await.waiting.count, 1);
    store.clock.turn(HOUR);
    assert_eq!(sweep(&store, &live).await.removed.count, 1);
    assert_eq!(
        keys(&store).await,
        ["s1/trunc/call_1"].map(String::from).into()
    );
}

#[tokio::test]
async fn the_probe_of_a_check_is_not_counted_as_content() {
    let store = store();
    let session = quick(store.clone()).session("s1");
    session.check_stores().await.unwrap();
    offload(&session, "call_1", 500).await;
    let probe = keys(&store).await.into_iter().next().unwrap();
    assert!(probe.starts_with("s1/swept/check-"), "{probe}");
    for expected in [(1, 0), (0, 1), (0, 0)] {
        store.clock.turn(2 * DAY);
        let report = sweep(&store, &Live::new()).await;
        assert_eq!((report.moved.count, report.removed.count), expected);
    }
    assert_eq!(keys(&store).await, [probe].into());
    session.check_stores().await.unwrap();
}

#[tokio::test]
async fn reading_brings_back_what_was_swept() {
    let store = store();
    let session = quick(store.clone()).session("s1");
    let location = offload(&session, "call_1", 500).await;
    store.clock.turn(2 * DAY);
    sweep(&store, &Live::new()).await;

    let forged = location.as_str().replace("/trunc/", "/swept/trunc/");
    assert!(
        reads(&session, &forged)
            .await
            .unwrap_err()
            .contains("not a stored result of this conversation"),
        "{forged}"
    );
    let other = quick(store.clone()).session("swept");
    assert!(
        reads(&other, &forged).await.is_err(),
        "no session is called so"
    );

    assert!(
        reads(&session, location.as_str())
            .await
            .unwrap()
            .contains("line 1\nline 2\n")
    );
    assert!(keys(&store).await.contains("s1/trunc/call_1"), "it is back");
    store.clock.turn(2 * DAY);
    let live = Live::new().text(location.as_str());
    assert_eq!(
        sweep(&store, &live).await.removed.count,
        1,
        "the place that it was brought back from"
    );
    assert_eq!(
        keys(&store).await,
        ["s1/trunc/call_1"].map(String::from).into()
    );
    assert_eq!(read(&store, "s1/trunc/call_1").await.unwrap(), lines(500));
}

#[tokio::test]
async fn swept_content_that_is_named_again_is_brought_back() {
    let store = store();
    let location = offload(&quick(store.clone()), "call_1", 500).await;
    store.clock.turn(2 * DAY);
    sweep(&store, &Live::new()).await;
    let live = Live::new().text(location.as_str());
    assert_eq!(sweep(&store, &live).await.brought_back.count, 1);
    assert_eq!(
        keys(&store).await,
        ["swept/trunc/call_1", "trunc/call_1"]
            .map(String::from)
            .into()
    );
    store.clock.turn(DAY);
    assert_eq!(sweep(&store, &live).await.removed.count, 1);
}

#[tokio::test]
async fn a_swept_name_is_taken_for_other_content() {
    for streams in [false, true] {
        let store = store();
        let session = quick(store.clone()).session("s1");
        let first = offload(&session, "call_1", 500).await;
        store.clock.turn(2 * DAY);
        sweep(&store, &Live::new()).await;
        // Twice: the second time, unnamed content is there.
        for count in [600, 700] {
            let output = match streams {
                false => ToolOutput::from(lines(count)),
                true => ToolOutput::stream(futures_util::stream::iter([Ok(Chunk::Bytes(
                    lines(count).into(),
                ))])),
            };
            let shown = session
                .truncate(&call("call_1", "grep"), output)
                .await
                .unwrap();
            let second = &shown.report.decisions[0].locations[0];
            assert!(
                second.as_str().starts_with(&format!("{first}-")),
                "{second}"
            );
            let read = session.read_original(second).await.unwrap().unwrap();
            assert_eq!(read, lines(count));
        }
        assert_eq!(
            session.read_original(&first).await.unwrap().unwrap(),
            lines(500)
        );
        let same = offload(&session, "call_1", 500).await;
        assert_eq!(
            session.read_original(&same).await.unwrap().unwrap(),
            lines(500)
        );
    }
}

#[tokio::test]
async fn a_dry_run_reports_and_changes_nothing() {
    let store = store();
    let reduction = quick(store.clone());
    for id in ["call_1", "call_2", "call_3"] {
        offload(&reduction, id, 500).await;
        store.clock.turn(2 * DAY);
    }
    let policy = SweepPolicy::new().quota_bytes(10_000);
    let before = keys(&store).await;
    let would = offcut::sweep::sweep(&reduction, &Live::new(), &policy, store.clock.now())
        .await
        .unwrap();
    assert_eq!((would.dry_run, keys(&store).await), (true, before));
    let report = offcut::sweep::sweep(&reduction, &Live::new(), &policy.apply(), store.clock.now())
        .await
        .unwrap();
    let mut done = report.clone();
    done.dry_run = true;
    assert_eq!(done, would);
    assert_eq!((would.moved.count, would.kept.count), (1, 2));
    assert_eq!(
        keys(&store).await,
        ["swept/trunc/call_1", "trunc/call_2", "trunc/call_3"]
            .map(String::from)
            .into()
    );
}

#[tokio::test]
async fn content_named_by_live_content_is_live() {
    let store = store();
    let put = async |path: &str, content: &str| {
        store
            .put(&key(path), content.to_owned().into())
            .await
            .unwrap();
    };
    put(
        "s1/clear/call_1-round",
        r#"[{"content":"[offcut/1 … \"memory://t/s1/clear/call_2-args\"]"}]"#,
    )
    .await;
    put(
        "s1/clear/call_2-args",
        r#"{"path":"memory://t/s1/trunc/call_3"}"#,
    )
    .await;
    put(
        "s1/trunc/call_3",
        "text that names memory://t/s1/trunc/call_4",
    )
    .await;
    put("s1/trunc/call_4", "text").await;
    put("s1/clear/call_5-args", "memory://t/s1/trunc/call_6").await;
    put("s1/trunc/call_6", "named by what nobody names").await;
    store.clock.turn(2 * DAY);
    let report = sweep(
        &store,
        &Live::new().text("see memory://t/s1/clear/call_1-round"),
    )
    .await;
    assert_eq!((report.live.count, report.moved.count), (3, 3));
}

#[tokio::test]
async fn content_named_by_live_content_of_another_session_is_live() {
    let store = store();
    // A sub-agent's result, named in arguments of another session that were cleared since.
    store
        .put(
            &key("main/clear/call_9-args"),
            r#"{"path":"memory://t/sub/trunc/call_1"}"#.into(),
        )
        .await
        .unwrap();
    store
        .put(
            &key("main/clear/notes.pdf"),
            "memory://t/sub/trunc/call_2".into(),
        )
        .await
        .unwrap();
    for path in ["sub/trunc/call_1", "sub/trunc/call_2", "sub/trunc/call_3"] {
        store.put(&key(path), "text".into()).await.unwrap();
    }
    store.clock.turn(2 * DAY);
    let live =
        Live::new().text("memory://t/main/clear/call_9-args memory://t/main/clear/notes.pdf");
    let policy = SweepPolicy::new().unreferenced().apply();
    let sub = quick(store.clone()).session("sub");
    let report = offcut::sweep::sweep(&sub, &live, &policy, store.clock.now())
        .await
        .unwrap();
    assert_eq!(
        (report.live.count, report.moved.count),
        (2, 1),
        "and nothing of `main` is counted"
    );
}

#[tokio::test]
async fn nested_sessions_have_keys_at_any_depth() {
    let store = store();
    let mut session = quick(store.clone());
    let mut stored = BTreeSet::new();
    for depth in 0..40 {
        session = session.session(&format!("agent {depth}"));
        let location = offload(&session, "call_1", 500).await;
        assert!(session.read_original(&location).await.is_some());
        assert!(stored.insert(location), "each has a place of its own");
    }
    store.clock.turn(2 * DAY);
    assert_eq!(sweep(&store, &Live::new()).await.moved.count, 40);
}

#[tokio::test]
async fn a_store_with_two_shown_names_is_swept_once() {
    use offcut::backend::Fs;
    let home = tempfile::tempdir().unwrap();
    let open = || Fs::open(home.path()).unwrap();
    let builder = ToolReduction::builder()
        .backend(open())
        .max_length_for_trunc(1_500)
        .preview_length(200);
    let reduction = builder
        .tool(
            "grep",
            ToolPolicy::new().backend(open().shown_as(".offcut")),
        )
        .build()
        .unwrap();
    let location = offload(&reduction, "call_1", 500).await;
    assert_eq!(location.as_str(), ".offcut/trunc/call_1");
    let policy = SweepPolicy::new().unreferenced().apply();
    let later = SystemTime::now() + 2 * DAY;
    let report = offcut::sweep::sweep(&reduction, &Live::new().location(&location), &policy, later)
        .await
        .unwrap();
    assert_eq!((report.live.count, report.moved.count), (1, 0));
    assert_eq!(
        offcut::sweep::sweep(&reduction, &Live::new(), &policy, later)
            .await
            .unwrap()
            .moved
            .count,
        1
    );
}

#[tokio::test]
async fn a_store_in_a_store_is_not_swept_from_above() {
    use offcut::backend::Fs;
    let home = tempfile::tempdir().unwrap();
    let inner = quick(Fs::open(home.path().join("7/store")).unwrap());
    let location = offload(&inner, "call_1", 500).await;
    let outer = quick(Fs::open(home.path()).unwrap());
    // Named by an agent that has the directory mounted elsewhere.
    let live = Live::new().text("/store/trunc/call_1");
    let policy = SweepPolicy::new().unreferenced().apply();
    let error = offcut::sweep::sweep(&outer, &live, &policy, SystemTime::now() + 2 * DAY)
        .await
        .unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("a store itself"), "{why}");
    assert!(inner.read_original(&location).await.unwrap().is_ok());
}

#[tokio::test]
async fn foreign_keys_are_left_alone() {
    let store = store();
    let others = [
        "notes",
        "a/b/c",
        "s1/other/call_1",
        "swept/notes",
        "trunc",
        "s1/trunc/call_1/deeper",
    ];
    for path in others {
        store.put(&key(path), "mine".into()).await.unwrap();
    }
    store.clock.turn(900 * DAY);
    assert_eq!(sweep(&store, &Live::new()).await, SweepReport::default());
    assert_eq!(keys(&store).await, others.map(String::from).into());
}

#[tokio::test]
async fn a_session_or_a_root_is_swept_by_itself() {
    let store = store();
    for session in ["s1", "s2"] {
        offload(&quick(store.clone()).session(session), "call_1", 500).await;
    }
    store.clock.turn(2 * DAY);
    let policy = SweepPolicy::new().unreferenced().apply();
    let only = quick(store.clone()).session("s1");
    assert_eq!(
        offcut::sweep::sweep(&only, &Live::new(), &policy, store.clock.now())
            .await
            .unwrap()
            .moved
            .count,
        1
    );
    assert_eq!(
        keys(&store).await,
        ["s1/swept/trunc/call_1", "s2/trunc/call_1"]
            .map(String::from)
            .into()
    );
    // Seen from the parent, it is the same place.
    store.clock.turn(2 * DAY);
    let report = sweep(&store, &Live::new().session("s2")).await;
    assert_eq!((report.removed.count, report.live.count), (1, 1));
}

#[tokio::test]
async fn one_sweep_at_a_time() {
    let store = store();
    offload(&quick(store.clone()), "call_1", 500).await;
    store
        .put(
            &key("swept/lease-1"),
            r#"{"by":"process 7\nerror: x","since":4000000000}"#.into(),
        )
        .await
        .unwrap();
    store.clock.turn(2 * DAY);
    let (reduction, policy) = (quick(store.clone()), SweepPolicy::new().unreferenced());
    let error = offcut::sweep::sweep(
        &reduction,
        &Live::new(),
        &policy.clone().apply(),
        store.clock.now(),
    )
    .await
    .unwrap_err();
    assert!(
        matches!(&error, SweepError::Held { by, .. } if by == "process 7\nerror: x"),
        "{error}"
    );
    assert!(
        !error.to_string().contains('\n'),
        "who wrote it adds no line to ours: {error}"
    );
    assert_eq!(keys(&store).await.len(), 2, "nothing was done");
    let would = offcut::sweep::sweep(&reduction, &Live::new(), &policy, store.clock.now())
        .await
        .unwrap();
    assert_eq!(would.moved.count, 1, "a dry run needs no lease");
}

#[tokio::test]
async fn all_stores_of_a_configuration_are_swept() {
    let (all, grep) = (
        store(),
        Clocked::new(Memory::named("grep").unwrap(), &Clock::new()),
    );
    let builder = || {
        ToolReduction::builder()
            .backend(all.clone())
            .max_length_for_trunc(1_500)
            .preview_length(200)
    };
    let reduction = builder()
        .tool("grep", ToolPolicy::new().backend(grep.clone()))
        .build()
        .unwrap();
    offload(&reduction, "call_1", 500).await;
    reduction
        .truncate(&call("call_2", "cat"), lines(500))
        .await
        .unwrap();
    // Content that is live in one store is named in the other.
    all.put(
        &key("clear/call_3-args"),
        "memory://grep/trunc/call_1".into(),
    )
    .await
    .unwrap();
    all.clock.turn(2 * DAY);
    grep.clock.turn(2 * DAY);
    let policy = SweepPolicy::new().unreferenced().apply();
    let live = Live::new().text("memory://t/clear/call_3-args");
    let report = offcut::sweep::sweep(&reduction, &live, &policy, all.clock.now())
        .await
        .unwrap();
    assert_eq!((report.live.count, report.moved.count), (2, 1));
    let report = offcut::sweep::sweep(&reduction, &Live::new(), &policy, all.clock.now())
        .await
        .unwrap();
    assert_eq!(report.moved.count, 2);
    assert_eq!(
        keys(&grep).await,
        ["swept/trunc/call_1"].map(String::from).into()
    );
}

#[tokio::test]
async fn wrong_policies_are_refused_before_anything_is_swept() {
    let store = store();
    let sweep = async |reduction: ToolReduction, policy: SweepPolicy| {
        offcut::sweep::sweep(&reduction, &Live::new(), &policy, SystemTime::now())
            .await
            .unwrap_err()
            .to_string()
    };
    let apply = || SweepPolicy::new().unreferenced().apply();
    let short = sweep(quick(store.clone()), apply().grace(Duration::from_secs(60))).await;
    insta::assert_snapshot!(short, @"a grace of 60 s is too short to be safe: use at least 3600 s");
    let none = ToolReduction::builder()
        .skip_truncation(true)
        .build()
        .unwrap();
    insta::assert_snapshot!(sweep(none, apply()).await, @"no store can be swept: set a backend; a store of your own must implement `Backend::remove`");
    insta::assert_snapshot!(sweep(quick(Plain::Never), apply()).await, @"no store can be swept: set a backend; a store of your own must implement `Backend::remove`");
    let unable = quick(Plain::Unable);
    let error = offcut::sweep::sweep(&unable, &Live::new(), &apply(), SystemTime::now())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, SweepError::Store(source) if source.to_string().contains("Backend::remove")),
        "{error}"
    );
    insta::assert_snapshot!(sweep(quick(Plain::Nameless), apply()).await, @"a/place can't be swept: its locations do not end in the keys that they name, so transcripts don't tell what is live; return false from `Backend::can_be_swept`");
    for root in ["swept", "agents/swept", "agents/Swept"] {
        let error = ToolReduction::builder()
            .backend(store.clone())
            .root_dir(root)
            .build()
            .unwrap_err();
        assert!(error.to_string().contains("`swept`"), "{error}");
    }
}

/// The removal that is tried before a sweep begins uses a name that nobody has seen and that says
/// nothing about the problem.
#[tokio::test]
async fn w4_a_store_that_cannot_remove_is_reported_briefly() {
    let apply = SweepPolicy::new().unreferenced().apply();
    let reduction = quick(Plain::Unable).session(&"s".repeat(64));
    let error = offcut::sweep::sweep(&reduction, &Live::new(), &apply, SystemTime::now())
        .await
        .unwrap_err();
    let SweepError::Store(source) = &error else {
        panic!("{error}")
    };
    assert_eq!(
        source.to_string(),
        "`swept/lease-0` can't be removed: this store has no `Backend::remove`, so it can't be swept"
    );
}

/// Custom stores that can't be swept.
#[derive(Debug, PartialEq)]
enum Plain {
    /// Says that it can't be swept.
    Never,
    /// Can't remove.
    Unable,
    /// Its locations don't show in a transcript which key they name.
    Nameless,
}

#[async_trait]
impl Backend for Plain {
    fn locate(&self, key: &Key) -> Location {
        Location::new(if *self == Self::Nameless {
            "a/place".to_owned()
        } else {
            format!("plain:/{key}")
        })
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        Key::new(location.strip_prefix("plain:/")?).ok()
    }

    async fn put(&self, key: &Key, _: Bytes) -> Result<PutOutcome, BackendError> {
        panic!("`{key}` was stored")
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        Memory::new().writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        Memory::new().read(key, range).await
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        Box::pin(futures_util::stream::empty())
    }

    fn can_be_swept(&self) -> bool {
        *self != Self::Never
    }
}
