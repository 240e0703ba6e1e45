//! The rules for what a sweep takes and leaves, one by one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use offcut::backend::{
    Backend, BackendError, Entry, Fs, Key, Location, Memory, PutOutcome, ReadRange, Writer,
};
use offcut::format::{self, Message};
use offcut::sweep::{Live, SweepPolicy, SweepReport};
use offcut::{Chunk, ToolOutput, ToolPolicy, ToolReduction};

use super::clocked::{Clock, Clocked};
use super::common::{call, lines};
use super::{DAY, HOUR, key, keys, quick};

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

fn apply() -> SweepPolicy {
    SweepPolicy::new().idle(2 * DAY).apply()
}

async fn sweep_at(
    reduction: &ToolReduction,
    live: &Live,
    policy: &SweepPolicy,
    now: SystemTime,
) -> SweepReport {
    let swept = offcut::sweep::sweep(reduction, live, policy, now).await;
    swept.unwrap()
}

/// Sweeps what has been idle for two days.
pub(crate) async fn sweep(store: &Clocked<Memory>, live: &Live) -> SweepReport {
    let reduction = quick(store.clone());
    let report = sweep_at(&reduction, live, &apply(), store.clock.now()).await;
    assert_eq!(report.failed, []);
    report
}

/// Conversations that were live, stayed, and went.
fn conversations(report: &SweepReport) -> [u64; 3] {
    [report.live, report.kept, report.removed].map(|tally| tally.conversations)
}

async fn put(store: &impl Backend, path: &str, content: &str) {
    let put = store.put(&key(path), content.to_owned().into()).await;
    assert_eq!(put.unwrap(), PutOutcome::Stored);
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
async fn w1_a_conversation_goes_as_one_when_it_is_idle() {
    let store = store();
    let session = quick(store.clone()).session("s1");
    offload(&session, "call_1", 500).await;
    store.clock.turn(47 * HOUR);
    assert_eq!(conversations(&sweep(&store, &Live::new()).await), [0, 1, 0]);
    offload(&session, "call_2", 600).await;
    store.clock.turn(48 * HOUR);
    assert_eq!(
        conversations(&sweep(&store, &Live::new()).await),
        [0, 1, 0],
        "not longer than the policy says"
    );
    store.clock.turn(HOUR);
    let report = sweep(&store, &Live::new()).await;
    assert_eq!((report.removed.conversations, report.removed.count), (1, 2));
    assert_eq!(keys(&store).await, BTreeSet::new(), "and at once");
}

#[tokio::test]
async fn w1_content_outside_of_sessions_is_one_conversation() {
    let store = store();
    let whole = quick(store.clone());
    offload(&whole, "call_1", 500).await;
    offload(&whole.session("s1"), "call_1", 500).await;
    store.clock.turn(2 * DAY);
    offload(&whole, "call_2", 600).await;
    store.clock.turn(HOUR);
    assert_eq!(conversations(&sweep(&store, &Live::new()).await), [0, 1, 1]);
    assert_eq!(
        keys(&store).await,
        ["trunc/call_1", "trunc/call_2"].map(String::from).into()
    );
}

#[tokio::test]
async fn w1_old_content_is_stored_anew_under_another_name() {
    for streams in [false, true] {
        let store = store();
        let session = quick(store.clone()).session("s1");
        let offload = async || {
            let output = match streams {
                false => ToolOutput::from(lines(500)),
                true => ToolOutput::stream(stream::iter([Ok(Chunk::Bytes(lines(500).into()))])),
            };
            let shown = session.truncate(&call("call_1", "grep"), output).await;
            shown.unwrap().report.decisions[0].locations[0].clone()
        };
        let first = offload().await;
        store.clock.turn(23 * HOUR);
        assert_eq!(offload().await, first);
        let mut all = BTreeSet::from([first]);
        for _ in 0..4 {
            store.clock.turn(25 * HOUR);
            let location = offload().await;
            assert!(all.insert(location.clone()), "{location} is old");
            let read = session.read_original(&location).await.unwrap().unwrap();
            assert_eq!(read, lines(500));
        }
    }
}

#[tokio::test]
async fn w2_reading_counts_as_use() {
    let store = store();
    let session = quick(store.clone()).session("s1");
    let location = offload(&session, "call_1", 500).await;
    let read = async || {
        let read = session.read_original(&location).await.unwrap();
        assert_eq!(read.unwrap(), lines(500));
    };
    read().await;
    assert_eq!(keys(&store).await.len(), 1, "young content is only read");
    for _ in 0..5 {
        store.clock.turn(40 * HOUR);
        read().await;
        read().await;
        assert_eq!(conversations(&sweep(&store, &Live::new()).await), [0, 1, 0]);
    }
    assert_eq!(keys(&store).await.len(), 6, "a note for each day");
    store.clock.turn(3 * DAY);
    assert_eq!(sweep(&store, &Live::new()).await.removed.count, 6);
    assert_eq!(keys(&store).await, BTreeSet::new());
}

/// A note that can't be written keeps nobody from reading.
#[tokio::test]
async fn w2_a_store_that_takes_no_note_is_read_all_the_same() {
    use offcut_testkit::{Fault, Faulty};
    let store = Memory::new();
    let session = |store| quick(store).session("s1");
    let location = offload(&session(Faulty::new(store.clone())), "call_1", 500).await;
    let full = Faulty::new(store.later_by(2 * DAY));
    full.fault_on_every_write(Fault::Fail(offcut::backend::ErrorKind::Full));
    let reader = session(full.clone());
    let read = async || reader.read_original(&location).await.unwrap().unwrap();
    assert_eq!(read().await, lines(500));
    assert_eq!((full.writes(), store.len()), (1, 1));
    full.heal();
    assert_eq!(read().await, lines(500));
    assert_eq!(store.len(), 2);
}

#[tokio::test]
async fn w3_one_name_keeps_its_conversation() {
    let store = store();
    let session = quick(store.clone()).session("s1");
    let named = offload(&session, "call_1", 500).await;
    offload(&session, "call_2", 600).await;
    offload(&quick(store.clone()).session("s2"), "call_1", 500).await;
    store.clock.turn(90 * DAY);
    let report = sweep(&store, &Live::new().location(&named)).await;
    assert_eq!(conversations(&report), [1, 0, 1]);
    assert_eq!(
        keys(&store).await,
        ["s1/trunc/call_1", "s1/trunc/call_2"]
            .map(String::from)
            .into()
    );
    let report = sweep(&store, &Live::new().session("s1")).await;
    assert_eq!(conversations(&report), [1, 0, 0]);
}

#[tokio::test]
async fn w3_what_live_conversations_name_in_turn_is_live() {
    let store = store();
    put(
        &store,
        "s1/clear/call_1-round",
        r#"[{"content":"[offcut/1 … \"memory://t/s2/clear/call_2-args\"]"}]"#,
    )
    .await;
    put(
        &store,
        "s2/clear/call_2-args",
        r#"{"path":"memory://t/s3/trunc/call_3"}"#,
    )
    .await;
    // The text of a tool names nothing: it was truncated before it could hold hints of ours.
    put(&store, "s3/trunc/call_3", "memory://t/s4/trunc/call_4").await;
    put(&store, "s4/trunc/call_4", "text").await;
    put(&store, "s5/clear/call_5-args", "memory://t/s6/trunc/call_6").await;
    put(&store, "s6/trunc/call_6", "named by what nobody names").await;
    // A loop that hands in originals has its hints in records.
    put(
        &store,
        "s7/meta/decided-0123456789abcdef-0",
        "memory://t/s8/trunc/call_8",
    )
    .await;
    put(&store, "s8/trunc/call_8", "text").await;
    store.clock.turn(3 * DAY);
    let live = Live::new()
        .text("see memory://t/s1/clear/call_1-round")
        .session("s7");
    assert_eq!(conversations(&sweep(&store, &live).await), [5, 0, 3]);
    let left: BTreeSet<_> = keys(&store)
        .await
        .iter()
        .map(|key| key[..2].to_owned())
        .collect();
    assert_eq!(
        left,
        ["s1", "s2", "s3", "s7", "s8"].map(String::from).into()
    );
}

#[tokio::test]
async fn w3_content_named_in_another_session_or_store_is_live() {
    let (all, grep) = (
        store(),
        Clocked::new(Memory::named("grep").unwrap(), &Clock::new()),
    );
    let builder = ToolReduction::builder()
        .backend(all.clone())
        .max_length_for_trunc(1_500)
        .preview_length(200);
    let reduction = builder
        .tool("grep", ToolPolicy::new().backend(grep.clone()))
        .build()
        .unwrap();
    offload(&reduction.session("sub"), "call_1", 500).await;
    put(
        &all,
        "main/clear/call_9-args",
        "memory://grep/sub/trunc/call_1",
    )
    .await;
    all.clock.turn(3 * DAY);
    grep.clock.turn(3 * DAY);
    let sweep = async |reduction: &ToolReduction, live: &Live| {
        sweep_at(reduction, live, &apply(), all.clock.now()).await
    };
    let live = Live::new().text("memory://t/main/clear/call_9-args");
    assert_eq!(conversations(&sweep(&reduction, &live).await), [2, 0, 0]);
    assert_eq!(
        conversations(&sweep(&reduction.session("sub"), &live).await),
        [1, 0, 0],
        "and nothing of `main` is counted"
    );
    let report = sweep(&reduction, &Live::new()).await;
    assert_eq!(conversations(&report), [0, 0, 2]);
    assert!(keys(&all).await.is_empty() && keys(&grep).await.is_empty());
}

/// Parts in several stores are one conversation: its records are in only one of them.
#[tokio::test]
async fn w1_a_conversation_in_two_stores_is_one() {
    let (all, grep) = (
        store(),
        Clocked::new(Memory::named("grep").unwrap(), &Clock::new()),
    );
    let reduction = ToolReduction::builder()
        .backend(all.clone())
        .tool("grep", ToolPolicy::new().backend(grep.clone()))
        .build()
        .unwrap();
    put(&grep, "s1/trunc/call_1", "old").await;
    for clock in [&all.clock, &grep.clock] {
        clock.turn(3 * DAY);
    }
    put(&all, "s1/meta/decided-0123456789abcdef-0", "{}").await;
    let report = sweep_at(&reduction, &Live::new(), &apply(), all.clock.now()).await;
    assert_eq!(conversations(&report), [0, 1, 0]);
}

#[tokio::test]
async fn w4_a_quota_takes_the_longest_idle() {
    let store = store();
    for number in 1..=4 {
        let session = quick(store.clone()).session(&format!("s{number}"));
        offload(&session, "call_1", 500).await;
        store.clock.turn(DAY);
    }
    let sweep = async |policy: &SweepPolicy| {
        let reduction = quick(store.clone());
        sweep_at(&reduction, &Live::new(), policy, store.clock.now()).await
    };
    let before = keys(&store).await;
    // The youngest two are younger than 48 hours, or just as old.
    let policy = SweepPolicy::new().quota_bytes(0);
    let would = sweep(&policy).await;
    assert_eq!((would.dry_run, keys(&store).await), (true, before));
    assert_eq!(conversations(&would), [0, 2, 2]);
    let policy = policy
        .quota_bytes(would.kept.bytes + would.removed.bytes / 2)
        .apply();
    assert_eq!(conversations(&sweep(&policy).await), [0, 3, 1]);
    assert!(!keys(&store).await.contains("s1/trunc/call_1"));
    let mut done = sweep(&policy.clone().quota_bytes(0)).await;
    assert_eq!(conversations(&done), [0, 2, 1]);
    done.dry_run = true;
    let again = SweepPolicy::new().quota_bytes(0);
    assert_eq!(sweep(&again).await.removed, Default::default());
}

#[tokio::test]
async fn w9_records_stay_and_go_with_what_they_name() {
    let store = store();
    let reduce = async |ids: &[&str]| {
        let mut messages = history(ids);
        let session = quick(store.clone()).session("s1");
        session.reduce(format::Plain, &mut messages).await.unwrap();
        messages
    };
    let records = async || {
        let keys = keys(&store).await;
        keys.iter()
            .filter(|key| key.contains("s1/meta/decided-"))
            .count()
    };
    reduce(&["call_1"]).await;
    store.clock.turn(20 * HOUR);
    let sent = reduce(&["call_1", "call_2"]).await;
    store.clock.turn(23 * HOUR);
    assert_eq!(reduce(&["call_1", "call_2"]).await, sent);
    store.clock.turn(25 * HOUR);
    assert_eq!(conversations(&sweep(&store, &Live::new()).await), [0, 1, 0]);
    assert_eq!(records().await, 2);
    store.clock.turn(DAY);
    let by_name = Live::new().session("s1");
    assert_eq!(conversations(&sweep(&store, &by_name).await), [1, 0, 0]);
    let report = sweep(&store, &Live::new()).await;
    assert_eq!(report.removed.count, 4, "two results and two records");
    assert_eq!(records().await, 0);
    // The conversation goes on all the same.
    assert_eq!(reduce(&["call_1", "call_2"]).await, sent);
    assert_eq!(records().await, 1);
}

#[tokio::test]
async fn notes_that_belong_to_no_conversation_stay() {
    let store = store();
    let session = quick(store.clone()).session("s1");
    session.check_stores().await.unwrap();
    offload(&session, "call_1", 500).await;
    let probe = keys(&store).await.into_iter().next().unwrap();
    assert!(probe.starts_with("s1/meta/check-"), "{probe}");
    let others = [
        "notes",
        "a/b/c",
        "s1/other/call_1",
        "meta/naming-secret",
        "trunc",
        "s1/trunc/call_1-/deeper",
    ];
    for path in others {
        put(&store, path, "mine").await;
    }
    store.clock.turn(900 * DAY);
    let report = sweep(&store, &Live::new()).await;
    assert_eq!((report.removed.count, report.kept.count), (1, 0));
    let mut left: BTreeSet<_> = others.map(String::from).into();
    left.insert(probe);
    assert_eq!(keys(&store).await, left);
    session.check_stores().await.unwrap();
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
    store.clock.turn(3 * DAY);
    let last = stored.first().unwrap();
    let report = sweep(&store, &Live::new().location(last)).await;
    assert_eq!(conversations(&report), [1, 0, 39]);
}

#[tokio::test]
async fn a_session_or_a_root_is_swept_by_itself() {
    let store = store();
    for session in ["s1", "s2"] {
        offload(&quick(store.clone()).session(session), "call_1", 500).await;
    }
    store.clock.turn(3 * DAY);
    let only = quick(store.clone()).session("s1");
    let report = sweep_at(&only, &Live::new(), &apply(), store.clock.now()).await;
    assert_eq!(conversations(&report), [0, 0, 1]);
    assert_eq!(
        keys(&store).await,
        ["s2/trunc/call_1"].map(String::from).into()
    );
}

#[tokio::test]
async fn a_store_with_two_shown_names_is_swept_once() {
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
    let later = SystemTime::now() + 3 * DAY;
    let sweep = async |live: &Live| sweep_at(&reduction, live, &apply(), later).await;
    let report = sweep(&Live::new().location(&location)).await;
    assert_eq!((report.live.count, report.removed.count), (1, 0));
    assert_eq!(sweep(&Live::new()).await.removed.count, 1);
}

#[tokio::test]
async fn a_store_in_a_store_is_not_swept_from_above() {
    let home = tempfile::tempdir().unwrap();
    let inner = quick(Fs::open(home.path().join("7/store")).unwrap());
    let location = offload(&inner, "call_1", 500).await;
    let outer = quick(Fs::open(home.path()).unwrap());
    // Named by an agent that has the directory mounted elsewhere.
    let live = Live::new().text("/store/trunc/call_1");
    let later = SystemTime::now() + 3 * DAY;
    let error = offcut::sweep::sweep(&outer, &live, &apply(), later)
        .await
        .unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("a store itself"), "{why}");
    assert!(inner.read_original(&location).await.unwrap().is_ok());
}

#[tokio::test]
async fn w7_sums_of_lengths_saturate() {
    let store = Custom::Endless(store());
    let Custom::Endless(inner) = &store else {
        return;
    };
    for path in [
        "s1/trunc/a",
        "s1/trunc/b",
        "s2/trunc/a",
        "live/trunc/a",
        "live/clear/b",
    ] {
        put(inner, path, "x").await;
    }
    let now = inner.clock.now() + 90 * DAY;
    let live = Live::new().text("live/trunc/a");
    for policy in [SweepPolicy::new().quota_bytes(u64::MAX), apply()] {
        let reduction = quick(store.clone());
        let report = sweep_at(&reduction, &live, &policy, now).await;
        assert_eq!((report.live.count, report.live.bytes), (2, u64::MAX));
        assert_eq!((report.removed.count, report.removed.bytes), (3, u64::MAX));
    }
}

#[tokio::test]
async fn wrong_policies_and_stores_are_refused_before_anything_is_swept() {
    let sweep = async |reduction: ToolReduction, policy: SweepPolicy| {
        offcut::sweep::sweep(&reduction, &Live::new(), &policy, SystemTime::now())
            .await
            .unwrap_err()
            .to_string()
    };
    let idle = apply().idle(Duration::from_secs(60));
    let short = sweep(quick(store()), idle).await;
    insta::assert_snapshot!(short, @"an idle time of 60 s is too short to be safe: use at least 172800 s");
    let none = ToolReduction::builder()
        .skip_truncation(true)
        .build()
        .unwrap();
    insta::assert_snapshot!(sweep(none, apply()).await, @"no store can be swept: set a backend; a store of your own must implement `Backend::remove`");
    insta::assert_snapshot!(sweep(quick(Custom::Unable), apply()).await, @"no store can be swept: set a backend; a store of your own must implement `Backend::remove`");
    insta::assert_snapshot!(sweep(quick(Custom::Nameless), apply()).await, @"a/place can't be swept: its locations do not end in the keys that they name, so transcripts don't tell what is live; make them end so, or leave out `Backend::remove`");
    for root in ["meta", "agents/meta", "agents/Meta"] {
        let error = ToolReduction::builder()
            .backend(store())
            .root_dir(root)
            .build()
            .unwrap_err();
        assert!(error.to_string().contains("`meta`"), "{error}");
    }
}

/// Content of a store that can't remove stays, and is searched like all else.
#[tokio::test]
async fn a_store_that_can_not_remove_is_only_searched() {
    let store = store();
    put(&store, "s1/trunc/call_1", "text").await;
    store.clock.turn(3 * DAY);
    let reduction = ToolReduction::builder()
        .backend(Custom::Unable)
        .tool("grep", ToolPolicy::new().backend(store.clone()))
        .build()
        .unwrap();
    let report = sweep_at(&reduction, &Live::new(), &apply(), store.clock.now()).await;
    assert_eq!(conversations(&report), [0, 0, 1]);
}

/// Stores of a user's own.
#[derive(Clone, Debug)]
enum Custom {
    /// Can't remove.
    Unable,
    /// Its locations don't show in a transcript which key they name.
    Nameless,
    /// Reports the largest possible length for all its content.
    Endless(Clocked<Memory>),
}

#[async_trait]
impl Backend for Custom {
    fn locate(&self, key: &Key) -> Location {
        Location::new(match self {
            Self::Nameless => "a/place".to_owned(),
            _ => format!("custom:/{key}"),
        })
    }

    fn resolve(&self, location: &str) -> Option<Key> {
        Key::new(location.strip_prefix("custom:/")?).ok()
    }

    async fn put(&self, key: &Key, _: Bytes) -> Result<PutOutcome, BackendError> {
        panic!("`{key}` was stored")
    }

    async fn writer(&self) -> Result<Box<dyn Writer>, BackendError> {
        Memory::new().writer().await
    }

    async fn read(&self, key: &Key, range: Range<u64>) -> Result<ReadRange, BackendError> {
        match self {
            Self::Endless(store) => store.read(key, range).await,
            _ => Memory::new().read(key, range).await,
        }
    }

    fn list(&self) -> BoxStream<'_, Result<Entry, BackendError>> {
        use futures_util::StreamExt;
        match self {
            Self::Endless(store) => {
                let endless = |entry| Entry {
                    bytes: u64::MAX,
                    ..entry
                };
                store.list().map(move |entry| entry.map(endless)).boxed()
            }
            _ => stream::empty().boxed(),
        }
    }

    async fn remove(&self, key: &Key, before: SystemTime) -> Result<(), BackendError> {
        match self {
            Self::Unable => {
                let why = "nothing is removed here";
                Err(BackendError::new(
                    offcut::backend::ErrorKind::Unsupported,
                    why,
                ))
            }
            Self::Nameless => Ok(()),
            Self::Endless(store) => store.remove(key, before).await,
        }
    }
}
