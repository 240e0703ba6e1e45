//! A session reads nothing that belongs to another: not by a forged hint, a stale hint or a name.

use std::time::Duration;

use crate::common::{builder, call, clear, content, lines, memory, round, stored, text};
use offcut::agent::Tool;
use offcut::backend::{Backend, ErrorKind, Fs, Key, Location, Memory};
use offcut::format::{Message, Messages, Plain, WireFormat};
use offcut::hint::Hint;
use offcut::report::Outcome;
use offcut::{Builder, Part, ToolCall, ToolPolicy, ToolReduction, Turn};
use offcut_testkit::{Fault, Faulty};
use serde_json::json;

const REFUSED: &str =
    "`path` is not a stored result of this conversation: copy it exactly from a hint";

fn eager(store: impl Backend) -> Builder {
    let builder = ToolReduction::builder()
        .backend(store)
        .token_counter(offcut::TokenCounter::Estimate);
    builder
        .max_length_for_trunc(1_500)
        .preview_length(200)
        .max_tokens_for_clear(1)
        .clear_retention_suffix_limit(0)
}

/// Reads `path` with the reader of `session`.
async fn read(session: &ToolReduction, path: &str) -> Result<String, String> {
    let call = ToolCall::new("r", "read_file", json!({"path": path}).to_string());
    let output = session
        .read_file_tool()
        .call(&call)
        .await
        .map_err(|error| error.to_string())?;
    Ok(output
        .into_parts()
        .await
        .0
        .iter()
        .map(|part| {
            if let Part::Text(text) = part {
                &**text
            } else {
                ""
            }
        })
        .collect())
}

/// Stores a result of the session. Returns its hint and location.
async fn secret(session: &ToolReduction) -> (String, Location) {
    let shown = session
        .truncate(&call("a", "vault"), lines(400))
        .await
        .unwrap()
        .text();
    let location = Hint::parse(&shown).unwrap().location.unwrap();
    (shown, location)
}

/// Content that other code drops is stored in the session's own folder, under a name that is never
/// a path (L6).
#[tokio::test]
async fn l6_originals_stay_in_their_session() {
    let session = builder(&memory()).build().unwrap().session("one");
    for (name, expected) in [
        ("notes", "memory://t/one/clear/notes-ed7002b439e9ac84"),
        ("../../etc/passwd", "memory://t/one/clear/ed7002b439e9ac84"),
        ("trunc", "memory://t/one/clear/ed7002b439e9ac84"),
    ] {
        let stored = session.store_original(name, "content").await.unwrap();
        assert_eq!(stored, Some(vec![Location::new(expected)]), "{name}");
        assert_eq!(
            read(&session, expected).await.unwrap().lines().last(),
            Some("content")
        );
    }
}

/// L1: a hint of the session itself is followed, a forged one is refused, and one of another
/// session is ordinary text.
#[tokio::test]
async fn l1_hints_are_not_stored_as_originals() {
    let whole = eager(memory()).build().unwrap();
    let (one, two) = (whole.session("one"), whole.session("two"));
    let (shown, location) = secret(&one).await;
    assert_eq!(
        one.store_original("n", &shown).await.unwrap(),
        Some(vec![location])
    );
    let forged = shown.replace("line 2\n", "line X\n");
    assert!(forged != shown && one.store_original("n", &forged).await.unwrap().is_none());
    let stored = two.store_original("n", &shown).await.unwrap().unwrap();
    let original = two.read_original(&stored[0]).await.unwrap().unwrap();
    assert_eq!(original, shown.as_bytes());
}

#[tokio::test]
async fn originals_need_a_backend() {
    let reduction = ToolReduction::builder()
        .skip_truncation(true)
        .build()
        .unwrap();
    let error = reduction.store_original("n", "content").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "this reduction has no backend: set one with `Builder::backend`"
    );
}

#[tokio::test]
async fn r1_locations_of_other_sessions_are_refused_whether_or_not_they_exist() {
    let store = memory();
    let whole = eager(store.clone()).root_dir("agent").build().unwrap();
    let (one, two) = (whole.session("one"), whole.session("two"));
    let (_, location) = secret(&one).await;
    assert!(read(&one, location.as_str()).await.is_ok());
    // The error is the same, so it does not reveal whether content exists.
    let nothing = location.as_str().replace("trunc/a", "trunc/nothing");
    for path in [location.as_str(), &nothing] {
        for other in [&two, &whole, &one.session("one"), &one.session("two")] {
            assert_eq!(read(other, path).await.unwrap_err(), REFUSED);
            assert!(other.read_original(&Location::new(path)).await.is_none());
        }
    }
}

#[tokio::test]
async fn r1_a_hint_of_another_session_among_the_results_is_text() {
    let store = Faulty::new(memory());
    let whole = eager(store.clone()).build().unwrap();
    let (one, two) = (whole.session("one"), whole.session("two"));
    let (shown, location) = secret(&one).await;
    let mut longer = Hint::parse(&shown).unwrap();
    longer.preview = "[… 9999 B …]\n".repeat(60);
    // A tool of the other session returns the hint, real or forged: a new result, then an old one.
    for result in [
        shown.clone(),
        longer.render(),
        format!("{shown}\n").repeat(20),
    ] {
        let came = two
            .truncate(&call("b", "curl"), result.as_str())
            .await
            .unwrap();
        let mut messages = [
            round("b", "curl", came.parts[0].clone()),
            round("z", "f", "ok"),
        ]
        .concat();
        messages.push(Message::assistant("done"));
        let report = clear(&two, &mut messages).await;
        assert_ne!(
            report.decisions[0].outcome,
            Outcome::Kept(offcut::report::Reason::AlreadyHint)
        );
        let hint = Hint::parse(text(content(&messages[1]))).unwrap();
        let there = two
            .read_original(hint.location.as_ref().unwrap())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            there,
            result.as_bytes(),
            "it is stored as what it is, in its own session"
        );
        assert!(
            hint.location
                .unwrap()
                .as_str()
                .starts_with("memory://t/two/")
        );
    }
    assert_eq!(read(&two, location.as_str()).await.unwrap_err(), REFUSED);
    let entry = store
        .inner()
        .read(&Key::new("one/trunc/a").unwrap(), 0..u64::MAX)
        .await
        .unwrap();
    assert_eq!(entry.bytes, lines(400).as_bytes());
}

/// Another reader has read the other session's file: its output is not cut to a page of that file.
#[tokio::test]
async fn r3_another_readers_output_from_another_session_is_not_a_page() {
    let whole = eager(memory()).build().unwrap();
    let (one, two) = (whole.session("one"), whole.session("two"));
    let (_, location) = secret(&one).await;
    let cat = ToolCall::new("c", "cat", json!({"file": location}).to_string());
    let shown = two.truncate(&cat, lines(400)).await.unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Truncated);
    assert_eq!(
        shown.report.decisions[0].locations[0].as_str(),
        "memory://t/two/trunc/c"
    );
}

#[tokio::test]
async fn r1_a_stale_hint_is_refused_with_a_reason() {
    let (store, moved) = (memory(), Memory::named("moved").unwrap());
    let session = eager(store).build().unwrap().session("one");
    let (_, location) = secret(&session).await;
    // Its root or its store has changed.
    let renamed = eager(moved.clone())
        .root_dir("agent")
        .build()
        .unwrap()
        .session("one");
    assert_eq!(
        read(&renamed, location.as_str()).await.unwrap_err(),
        REFUSED
    );
    // Its session is known, but its content is gone.
    let emptied = eager(memory()).build().unwrap().session("one");
    let gone = "nothing is stored at `path`: copy it from a hint, or call the tool again";
    assert_eq!(read(&emptied, location.as_str()).await.unwrap_err(), gone);
}

/// A session whose id is not a safe name has a digest as its prefix. Using that digest as an id
/// does not give the same prefix.
#[tokio::test]
async fn l6_no_session_gets_the_prefix_of_another() {
    let whole = builder(&memory())
        .max_length_for_trunc(1_500)
        .preview_length(200)
        .build()
        .unwrap();
    for id in ["../one", "", "user@example.org", "meta", &"x".repeat(65)] {
        let session = whole.session(id);
        let (_, location) = secret(&session).await;
        let prefix = location
            .as_str()
            .strip_prefix("memory://t/")
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        let thief = whole.session(prefix);
        assert!(
            thief.read_original(&location).await.is_none(),
            "{id:?} is {prefix}"
        );
        assert_eq!(read(&thief, location.as_str()).await.unwrap_err(), REFUSED);
        assert!(
            whole.session(id).read_original(&location).await.is_some(),
            "the same id is the same session"
        );
    }
}

/// Names that the store itself uses, also as seen by file systems that ignore case.
const RESERVED: [&str; 5] = ["trunc", "clear", "meta", "Trunc", "CLEAR"];

#[tokio::test]
async fn l6_no_call_is_stored_at_the_prefix_of_a_session() {
    let home = tempfile::tempdir().unwrap();
    let whole = eager(Fs::open(home.path()).unwrap()).build().unwrap();
    for holder in [
        whole.clone(),
        whole.session("one"),
        whole.session("one").session("trunc"),
    ] {
        for id in RESERVED {
            for phase in 0..2 {
                let shown = if phase == 0 {
                    holder
                        .truncate(&call(id, "f"), lines(400))
                        .await
                        .unwrap()
                        .text()
                } else {
                    let mut messages = [round(id, "f", lines(100)), round("z", "f", "ok")].concat();
                    clear(&holder, &mut messages).await;
                    text(content(&messages[1])).to_owned()
                };
                let location = Hint::parse(&shown).unwrap().location.unwrap();
                assert!(
                    !location.as_str().ends_with(&format!("/{id}")),
                    "{location}"
                );
                assert!(holder.read_original(&location).await.unwrap().is_ok());
            }
        }
        for id in RESERVED {
            for session in [holder.session(id), holder.session("two").session(id)] {
                let (_, location) = secret(&session).await;
                assert!(
                    !location.as_str().contains(&format!("/{id}/trunc/")),
                    "{location}"
                );
                assert_eq!(
                    session.read_original(&location).await.unwrap().unwrap(),
                    lines(400)
                );
                assert!(holder.read_original(&location).await.is_none());
            }
        }
    }
}

#[tokio::test]
async fn l6_an_id_from_a_callback_is_not_a_reserved_name() {
    for given in RESERVED {
        let reduction = eager(memory()).trunc_id_with(move |_: &ToolCall| Ok(given.to_owned()));
        let shown = reduction
            .build()
            .unwrap()
            .truncate(&call("a", "f"), lines(400))
            .await
            .unwrap();
        assert_eq!(
            shown.report.decisions[0].locations[0].as_str(),
            "memory://t/trunc/a"
        );
        assert!(
            shown.report.decisions[0]
                .error
                .as_ref()
                .unwrap()
                .contains("`trunc`")
        );
    }
}

#[test]
fn o2_no_root_holds_a_reserved_name() {
    for root in ["trunc", "agent/Clear", "meta/agent", "a/trunc/b"] {
        let error = eager(memory())
            .root_dir(root)
            .build()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`trunc`, `clear` or `meta`"),
            "{root}: {error}"
        );
    }
}

fn anthropic(tools: &[&str], content: &serde_json::Value) -> Vec<serde_json::Value> {
    let round = |tool: &&str| {
        [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": tool, "name": tool, "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": tool, "content": content}]}),
        ]
    };
    let begin = json!({"role": "user", "content": "go"});
    std::iter::once(begin)
        .chain(tools.iter().flat_map(round))
        .collect()
}

#[tokio::test]
async fn l4_decisions_have_one_place_where_tools_have_stores_of_their_own() {
    for _ in 0..20 {
        let stores = ["b", "a", "c"].map(|name| Memory::named(name).unwrap());
        let builder = ToolReduction::builder()
            .max_length_for_trunc(1_500)
            .preview_length(200)
            .skip_truncation(true)
            .skip_clear(true);
        let with = |builder: Builder, (tool, store): (&str, &Memory)| {
            builder.tool(
                tool,
                ToolPolicy::new()
                    .backend(store.clone())
                    .skip_truncation(false),
            )
        };
        let named = ["b", "a", "c"].into_iter().zip(&stores);
        let reduction = named.fold(builder, with).build().unwrap();
        let mut messages = anthropic(&["c"], &json!(lines(400)));
        let session = reduction.session("s");
        session
            .reduce(&WireFormat::Anthropic, &mut messages)
            .await
            .unwrap();
        let written = stores.each_ref().map(Memory::len);
        assert_eq!(written, [0, 1, 1], "the record is in the store of `a`");
    }
}

#[tokio::test]
async fn l4_a_result_is_not_half_truncated_for_ever_after_a_store_failed() {
    let texts: Vec<_> = ["one", "two"]
        .map(|name| json!({"type": "text", "text": format!("{name}\n{}", lines(400))}))
        .into();
    let original = anthropic(&["f"], &json!(texts));
    for failing in 1..=3 {
        let store = Faulty::new(Memory::new());
        let reduction = eager(store.clone()).max_tokens_for_clear(1_000_000);
        let session = reduction.build().unwrap().session("s");
        store.fault_on_write(failing, Fault::Fail(ErrorKind::Unavailable));
        let mut first = original.clone();
        session
            .reduce(&WireFormat::Anthropic, &mut first)
            .await
            .unwrap();
        let stays = first == original;
        store.heal();
        let mut second = original.clone();
        session
            .reduce(&WireFormat::Anthropic, &mut second)
            .await
            .unwrap();
        assert!(stays || first == second);
        let result = second[2].to_string();
        assert!(result.len() < 2_000, "{failing}: {result}");
    }
}

#[tokio::test]
async fn b8_a_turn_that_only_repeats_decides_nothing_and_stores_nothing() {
    let store = memory();
    let session = eager(store.clone()).build().unwrap().session("s");
    let reduce = async |messages: &mut Vec<Message>, repeats_only| {
        let mut messages = Messages::new(Plain, messages);
        let mut turn = Turn {
            repeats_only,
            ..Turn::new(&mut messages)
        };
        session.reduce_turn(&mut turn).await.unwrap()
    };
    let history: Vec<Message> = (0..4)
        .flat_map(|n| round(&format!("r{n}"), "f", lines(400)))
        .collect();
    let mut sent = history.clone();
    assert!(!reduce(&mut sent, true).await.is_change());
    assert!(sent == history && store.is_empty());
    reduce(&mut sent, false).await;
    let stored = store.len();
    let mut repeated = history.clone();
    repeated.extend(round("new", "f", lines(400)));
    assert!(reduce(&mut repeated, true).await.is_change());
    assert_eq!(repeated[..history.len()], sent);
    assert_eq!(repeated[history.len()..], round("new", "f", lines(400))[..]);
    assert_eq!(store.len(), stored);
}

/// Two processes that know a conversation, whose records somebody removes.
#[tokio::test]
async fn b6_processes_agree_again_after_all_was_removed() {
    let store = memory();
    let process = || eager(store.clone()).build().unwrap().session("s");
    let (one, two) = (process(), process());
    let mut history = Vec::new();
    for n in 0..12 {
        history.extend(round(&format!("call_{n}"), "f", lines(300 + n)));
        if n == 6 {
            for (location, _) in stored(&store).await {
                let key = store.resolve(&location).unwrap();
                store
                    .remove(&key, store.now() + Duration::from_secs(9))
                    .await
                    .unwrap();
            }
            assert!(store.is_empty());
        }
        let mut sent = [history.clone(), history.clone()];
        let order = if n % 2 == 0 {
            [&one, &two]
        } else {
            [&two, &one]
        };
        for (process, messages) in order.into_iter().zip(&mut sent) {
            process.reduce(Plain, messages).await.unwrap();
        }
        assert_ne!(sent[0], history);
        assert_eq!(sent[0], sent[1], "{n}");
    }
}
