//! Whole histories in one call: the same bytes from any process.

// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "histories/arms.rs"]
mod arms;
#[path = "histories/changes.rs"]
mod changes;
mod common;
#[path = "histories/kills.rs"]
mod kills;
#[path = "histories/records.rs"]
mod records;
#[cfg(feature = "toml")]
#[path = "histories/traces.rs"]
mod traces;

use common::{call, content, lines, memory, round, text};
use offcut::backend::{Backend, Memory};
use offcut::format::{Message, Messages, Plain, RequestBody};
use offcut::hint::{Hint, Kind};
use offcut::report::{Outcome, Reason};
use offcut::{Builder, Report, ToolReduction};
use offcut_testkit::Faulty;

/// Cuts results over 1 500 bytes, and clears all old ones over 2 000 tokens.
fn small(store: impl Backend) -> Builder {
    let builder = ToolReduction::builder()
        .backend(store)
        .token_counter(offcut::TokenCounter::Estimate);
    builder
        .max_length_for_trunc(1_500)
        .preview_length(200)
        .stub_length(0)
        .max_tokens_for_clear(2_000)
        .clear_retention_suffix_limit(1)
}

fn new_process(store: &Memory) -> ToolReduction {
    small(store.clone()).build().unwrap()
}

/// A history of `rounds` rounds, each with a result of some 3 000 or 900 bytes.
fn history(rounds: usize) -> Vec<Message> {
    let mut messages = vec![Message::user("go")];
    for number in 0..rounds {
        let length = if number % 3 == 0 { 350 } else { 110 };
        messages.extend(round(
            &format!("call_{number}"),
            "grep",
            &*format!("{number}: {}", lines(length)),
        ));
    }
    messages
}

async fn reduce(reduction: &ToolReduction, messages: &[Message]) -> (Vec<Message>, Report) {
    let mut sent = messages.to_vec();
    let report = reduction.reduce(Plain, &mut sent).await.unwrap();
    (sent, report)
}

fn keys(store: &Memory, part: &str) -> Vec<String> {
    let mut keys: Vec<_> = arms::keys(store);
    keys.retain(|key| key.contains(part));
    keys
}

#[tokio::test]
async fn a_new_result_is_truncated_as_if_it_had_just_arrived() {
    let (store, other) = (memory(), memory());
    let messages = history(1);
    let (sent, report) = reduce(&new_process(&store), &messages).await;
    let arrived = new_process(&other)
        .truncate(&call("call_0", "grep"), text(content(&messages[2])))
        .await
        .unwrap();
    assert_eq!(content(&sent[2]), arrived.parts);
    assert_eq!(report.decisions.len(), 1);
    assert_eq!(report.decisions[0].outcome, Outcome::Truncated);
    assert_eq!(report.decisions[0].message, Some(2));
    assert_eq!(report.saved_bytes(), arrived.report.saved_bytes());
    assert_eq!(sent[..2], messages[..2]);
}

#[tokio::test]
async fn l4_every_process_sends_what_the_first_one_sent() {
    let store = memory();
    let one = new_process(&store);
    for rounds in 1..24 {
        let messages = history(rounds);
        let (sent, report) = reduce(&one, &messages).await;
        let before = arms::keys(&store);
        let (again, repeated) = reduce(&new_process(&store), &messages).await;
        assert_eq!(again, sent, "{rounds} rounds");
        let is_new = |outcome: Outcome| outcome.is_change() && outcome != Outcome::Repeated;
        assert!(
            repeated
                .decisions
                .iter()
                .all(|decision| !is_new(decision.outcome))
        );
        assert_eq!(repeated.saved_bytes(), report.saved_bytes());
        assert_eq!(
            arms::keys(&store),
            before,
            "what is stored is not stored again"
        );
        let (idle, _) = reduce(&one, &sent).await;
        assert_eq!(idle, sent, "its own output stays as it is");
    }
    assert!(keys(&store, "clear/").len() > 5, "nothing was cleared");
}

/// The variant without records: each process decides by itself.
#[tokio::test]
async fn l4_finds_processes_that_keep_no_records() {
    let one = new_process(&memory());
    let mut differs = 0;
    for rounds in 1..24 {
        let messages = history(rounds);
        let (sent, _) = reduce(&one, &messages).await;
        let (again, _) = reduce(&new_process(&memory()), &messages).await;
        differs += usize::from(again != sent);
    }
    assert!(differs > 3, "{differs} calls differ");
}

#[tokio::test]
async fn decisions_belong_to_results_and_not_to_places() {
    let store = memory();
    let (sent, _) = reduce(&new_process(&store), &history(12)).await;
    let is_result = |message: &&Message| matches!(message, Message::Tool { .. });
    let results = |messages: &[Message]| {
        messages
            .iter()
            .filter(is_result)
            .cloned()
            .collect::<Vec<_>>()
    };
    let mut changed = history(12);
    changed.insert(0, Message::system("reworded"));
    changed.insert(7, Message::system("a reminder that was not there before"));
    let (other, _) = reduce(&new_process(&store), &changed).await;
    assert_eq!(results(&other), results(&sent));
    assert_eq!(other.len(), sent.len() + 2);
}

#[tokio::test]
async fn c13_a_result_that_is_unanswered_again_is_only_truncated() {
    let store = memory();
    reduce(&new_process(&store), &history(12)).await;
    let back = history(1);
    let (sent, _) = reduce(&new_process(&store), &back).await;
    let hint = Hint::parse(text(content(&sent[2]))).unwrap();
    assert_eq!(hint.kind, Kind::Truncated);
}

#[tokio::test]
async fn equal_results_are_told_apart_by_their_number() {
    let store = memory();
    let mut messages = vec![Message::user("go")];
    for _ in 0..12 {
        messages.extend(round("call_0", "grep", &*lines(110)));
    }
    let (sent, _) = reduce(&new_process(&store), &messages).await;
    let (again, _) = reduce(&new_process(&store), &messages).await;
    assert_eq!(sent, again);
    messages.extend(round("call_0", "grep", &*lines(110)));
    let (more, _) = reduce(&new_process(&store), &messages).await;
    assert_eq!(more[..sent.len() - 2], sent[..sent.len() - 2]);
    assert_eq!(
        content(more.last().unwrap()),
        content(messages.last().unwrap())
    );
}

#[tokio::test]
async fn hints_that_are_over_a_smaller_limit_stay() {
    let store = memory();
    let wide = small(store.clone()).preview_length(1_000).build().unwrap();
    let (sent, _) = reduce(&wide, &history(1)).await;
    let smaller = small(store.clone())
        .max_length_for_trunc(700)
        .build()
        .unwrap();
    let (again, report) = reduce(&smaller, &sent).await;
    assert_eq!(again, sent);
    assert_eq!(
        report.decisions[0].outcome,
        Outcome::Kept(Reason::AlreadyHint)
    );
    let imitation = text(content(&sent[2])).replace("line 1\n", "line 9\n");
    let (shown, _) = reduce(&smaller, &round("call_7", "cat", &*imitation)).await;
    assert_ne!(text(content(&shown[1])), imitation);
}

#[tokio::test]
async fn two_calls_at_once_agree() {
    let store = memory();
    for rounds in [3, 9, 15] {
        let messages = history(rounds);
        let (one, other) = (new_process(&store), new_process(&store));
        let calls = futures_util::future::join_all([
            reduce(&one, &messages),
            reduce(&other, &messages),
            reduce(&one, &messages),
        ]);
        let sent = calls.await;
        assert!(sent.iter().all(|(messages, _)| *messages == sent[0].0));
        let (later, _) = reduce(&new_process(&store), &messages).await;
        assert_eq!(later, sent[0].0);
    }
}

#[tokio::test]
async fn l8_a_process_that_knows_a_history_asks_for_two_records_and_some_content() {
    let store = Faulty::new(memory());
    let one = small(store.clone()).build().unwrap();
    for rounds in 1..16 {
        reduce(&one, &history(rounds)).await;
    }
    let records = keys(store.inner(), "decided-").len() as u64;
    let (reads, writes) = (store.reads(), store.writes());
    reduce(&one, &history(15)).await;
    assert_eq!((store.reads() - reads, store.writes() - writes), (18, 0));
    let new = small(store.clone()).build().unwrap();
    reduce(&new, &history(15)).await;
    let asked = store.reads() - reads - 18;
    assert!(
        records > 5 && asked <= records + 24,
        "{asked} requests for {records} records"
    );
    assert_eq!(store.writes(), writes);
    // The same where nothing has been decided yet.
    let (reads, short) = (store.reads(), round("call_1", "ls", "a"));
    let session = one.session("short");
    reduce(&session, &short).await;
    let first = store.reads() - reads;
    reduce(&session, &short).await;
    assert_eq!((first, store.reads() - reads), (8, 9));
}

/// The variant that remembers nothing: it reads all records before each call.
#[tokio::test]
async fn l8_finds_a_process_that_remembers_nothing() {
    let store = Faulty::new(memory());
    let one = small(store.clone()).build().unwrap();
    for rounds in 1..16 {
        reduce(&one, &history(rounds)).await;
    }
    let reads = store.reads();
    let forgetful = small(store.clone()).build().unwrap();
    reduce(&forgetful, &history(15)).await;
    assert!(store.reads() - reads > 5);
}

#[tokio::test]
async fn other_settings_and_other_sessions_decide_for_themselves() {
    let store = memory();
    let messages = history(1);
    let (sent, _) = reduce(&new_process(&store).session("one"), &messages).await;
    let (other, report) = reduce(&new_process(&store).session("two"), &messages).await;
    assert_ne!(other, sent, "it has another place");
    assert_eq!(report.decisions[0].outcome, Outcome::Truncated);
    let longer = small(store.clone()).preview_length(400).build().unwrap();
    let (longer, _) = reduce(&longer.session("one"), &messages).await;
    assert_ne!(longer, sent);
}

#[tokio::test]
async fn a_conversation_without_a_name_is_found_by_its_first_call() {
    let store = memory();
    let reduction = new_process(&store);
    let prefix = |tenant: &str, messages: &[Message]| {
        let mut messages = messages.to_vec();
        let conversation = Messages::new(Plain, &mut messages);
        reduction
            .conversation(tenant, b"a secret", &conversation)
            .prefix()
            .to_owned()
    };
    let long = "call_Vm8Xq2LkT0aR";
    let begin = |said: &str, id: &str| {
        let mut messages = vec![Message::system(said), Message::user(said)];
        messages.extend(round(id, "grep", &*lines(400)));
        messages
    };
    let first = begin("go", long);
    let name = prefix("team", &first);
    assert!(name.starts_with("team/c-"), "{name}");
    assert_eq!(prefix("team", &first[..3]), name, "before the result");
    assert_eq!(prefix("team", &begin("<system-reminder>", long)), name);
    let mut later = first.clone();
    later.extend(round("call_2", "sed", "x"));
    assert_eq!(prefix("team", &later), name);
    for other in [
        begin("go", "call_1"),
        begin("stop", "call_1"),
        begin("go", "call_Vm8Xq2LkT0aS"),
    ] {
        assert_ne!(prefix("team", &other), name);
    }
    assert_ne!(
        prefix("team", &begin("go", "call_1")),
        prefix("team", &begin("stop", "call_1"))
    );
    assert_ne!(prefix("other", &first), name);
    assert_eq!(prefix("team", &first[..2]), "team/none/");
    let mut messages = first.clone();
    let conversation = Messages::new(Plain, &mut messages);
    let guessed = reduction.conversation("team", b"another secret", &conversation);
    assert_ne!(guessed.prefix(), name);
}

#[tokio::test]
async fn old_hints_lead_somewhere_within_a_tenant_and_nowhere_else() {
    let store = memory();
    let reduction = new_process(&store);
    let of = |tenant: &str, messages: &[Message]| {
        let mut messages = messages.to_vec();
        reduction.conversation(tenant, b"", &Messages::new(Plain, &mut messages))
    };
    let before = history(1);
    let (sent, report) = reduce(&of("team", &before), &before).await;
    // After a compaction it begins with another call, and still shows a hint.
    let mut compacted = vec![Message::user("so far: …")];
    compacted.extend(round("call_9", "sed", text(content(&sent[2]))));
    let (later, stranger) = (of("team", &compacted), of("other", &compacted));
    assert_ne!(later.prefix(), of("team", &before).prefix());
    let location = &report.decisions[0].locations[0];
    let original = later.read_original(location).await.unwrap().unwrap();
    assert_eq!(original, text(content(&before[2])));
    assert!(stranger.read_original(location).await.is_none());
    assert_eq!(reduce(&later, &compacted).await.0, compacted);
}

#[tokio::test]
async fn c8_without_a_store_decisions_last_as_long_as_the_process() {
    let builder = ToolReduction::builder().token_counter(offcut::TokenCounter::Estimate);
    let reduction = builder
        .skip_truncation(true)
        .max_tokens_for_clear(2_000)
        .build()
        .unwrap();
    let (sent, report) = reduce(&reduction, &history(20)).await;
    assert!(
        report
            .decisions
            .iter()
            .any(|decision| decision.outcome == Outcome::Lost)
    );
    let (again, _) = reduce(&reduction, &history(20)).await;
    assert_eq!(again, sent);
}

#[tokio::test]
async fn c17_every_other_byte_of_a_body_stays() {
    let long = lines(400).replace('\n', "\\n");
    let before = r#"{ "n": 1.00, "input": [{"type":"function_call","call_id":"c","name":"x","arguments":"{}"}, {"type":"function_call_output", "call_id": "c", "output": [ {"type":"input_text","text":"Exit 0"},{"type":"input_text","text":""#;
    let after = r#"","more":1e2}]}],"n":2}"#;
    let store = memory();
    for _ in 0..2 {
        let mut body = RequestBody::parse(format!("{before}{long}{after}")).unwrap();
        new_process(&store).reduce_body(&mut body).await.unwrap();
        let sent = body.to_string();
        // Only the list with the long text is written anew.
        let (head, _) = before.split_once("[ {\"type\":\"input_text\"").unwrap();
        assert!(
            sent.starts_with(head) && sent.ends_with("}],\"n\":2}"),
            "{sent}"
        );
        for kept in ["\"Exit 0\"", "\"more\":1e2", "[offcut/1 truncated"] {
            assert!(sent.contains(kept), "{sent}");
        }
    }
    let text = r#"{"messages": [ ], "x": 1}"#;
    let mut body = RequestBody::parse(text).unwrap();
    new_process(&store).reduce_body(&mut body).await.unwrap();
    assert_eq!(body.to_string(), text);
}

#[cfg(feature = "toml")]
mod over_transcripts {
    use offcut::backend::{Fs, Memory};

    use super::traces::compare;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.build().unwrap()
    }

    #[test]
    fn l4_transcripts_have_the_same_bytes_from_any_process() {
        let store = || Memory::named("t").unwrap();
        compare(&runtime(), "memory", || [store(), store(), store()]);
    }

    #[test]
    fn l4_transcripts_have_the_same_bytes_from_any_process_over_files() {
        let folders: [tempfile::TempDir; 3] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
        let mut number = 0;
        // Each conversation has a folder of its own, shown under one name.
        compare(&runtime(), "files", || {
            number += 1;
            folders.each_ref().map(|folder| {
                let root = folder.path().join(number.to_string());
                std::sync::Arc::new(Fs::open(root).unwrap().shown_as("/store"))
            })
        });
    }
}
