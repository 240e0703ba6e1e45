//! Handlers and callbacks (T9, C14): they get their way, and their failures harm nothing else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{
    builder, call, clear, content, lines, memory, outcomes, round, stored, text, tokens,
};
use futures_util::stream;
use offcut::backend::{ErrorKind, Memory};
use offcut::format::Message;
use offcut::handler::{Action, ClearHandler, HandlerError, Replacement, ToolOutcome, TruncHandler};
use offcut::hint::Hint;
use offcut::preview::{Preview, PreviewOf};
use offcut::report::{ErrorSource, Outcome, Reason, Subject};
use offcut::{
    Builder, Chunk, OffloadError, OnOffloadError, Part, ToolCall, ToolError, ToolOutput, ToolPolicy,
};
use offcut_testkit::{Fault, Faulty};

type Wish = Result<Action, HandlerError>;

fn small(store: &Memory) -> Builder {
    builder(store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .max_tokens_for_clear(100)
}

fn keep(_: ToolOutcome) -> Wish {
    Ok(Action::Keep)
}

/// Shows the text in capitals and stores the original.
#[allow(clippy::needless_pass_by_value, reason = "handlers take it")]
fn shout(outcome: ToolOutcome) -> Wish {
    let text = outcome.text();
    let shown = text.to_uppercase();
    Ok(Action::Replace(Replacement::storing(
        text,
        move |location| {
            format!(
                "{shown} @{}",
                location.map_or("nowhere", |location| location.as_str())
            )
        },
    )))
}

fn fails(_: ToolOutcome) -> Wish {
    Err("no idea".into())
}

fn panics(_: ToolOutcome) -> Wish {
    panic!("a handler's panic")
}

fn later(
    handler: fn(ToolOutcome) -> Wish,
) -> impl Fn(ToolOutcome) -> std::future::Ready<Wish> + Send + Sync + 'static {
    move |outcome| std::future::ready(handler(outcome))
}

/// A handler may be a type with its own data.
struct Rows(usize);

impl Rows {
    fn first(&self, outcome: &ToolOutcome) -> Action {
        let first: String = outcome
            .text()
            .lines()
            .take(self.0)
            .map(|row| format!("{row}\n"))
            .collect();
        Action::Replace(Replacement::storing(outcome.text(), move |_| first.clone()))
    }
}

#[async_trait::async_trait]
impl TruncHandler for Rows {
    async fn handle(&self, outcome: ToolOutcome) -> Wish {
        Ok(self.first(&outcome))
    }
}

impl ClearHandler for Rows {
    fn handle(&self, outcome: ToolOutcome) -> Wish {
        Ok(self.first(&outcome))
    }
}

#[tokio::test]
async fn handlers_may_be_types() {
    let reduction = small(&memory())
        .trunc_handler(Rows(2))
        .clear_handler(Rows(1))
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("a", "f"), lines(500))
        .await
        .unwrap();
    assert_eq!(shown.text(), "line 1\nline 2\n");
    let mut messages = old(lines(99));
    clear(&reduction, &mut messages).await;
    assert_eq!(text(content(&messages[1])), "line 1\n");
}

#[tokio::test]
async fn t9_keep_keeps_a_result_of_any_length() {
    let store = memory();
    let reduction = small(&store).trunc_handler(later(keep)).build().unwrap();
    let shown = reduction
        .truncate(&call("a", "f"), lines(500))
        .await
        .unwrap();
    assert_eq!(shown.text(), lines(500));
    assert_eq!(
        outcomes(&shown.report),
        [("a".to_owned(), Outcome::Kept(Reason::Handler))]
    );
    assert!(store.is_empty());
}

#[tokio::test]
async fn t9_a_replacement_is_shown_and_its_content_stored_whatever_its_length() {
    let store = memory();
    let reduction = small(&store)
        .trunc_handler(async |outcome: ToolOutcome| shout(outcome))
        .build()
        .unwrap();
    let shown = reduction.truncate(&call("a", "f"), "short").await.unwrap();
    assert_eq!(shown.text(), "SHORT @memory://t/trunc/a");
    let decision = &shown.report.decisions[0];
    assert_eq!(
        (
            decision.outcome,
            decision.bytes.before,
            decision.bytes.after
        ),
        (Outcome::Replaced, 5, 25)
    );
    assert_eq!(decision.locations[0].as_str(), "memory://t/trunc/a");
    assert_eq!(
        stored(&store).await,
        [("memory://t/trunc/a".to_owned(), b"short".to_vec())]
    );
}

#[tokio::test]
async fn t9_a_handler_gets_the_call_the_parts_and_the_error_mark() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let handler = move |outcome: ToolOutcome| {
        log.lock().unwrap().push(outcome);
        std::future::ready(Ok(Action::Default))
    };
    let reduction = small(&memory()).trunc_handler(handler).build().unwrap();
    let call = ToolCall::new("a", "f", r#"{"x":1}"#);
    let parts = vec![Part::Text("one".into()), Part::Json(serde_json::json!([1]))];
    reduction
        .truncate(
            &call,
            ToolOutput {
                is_error: true,
                ..ToolOutput::parts(parts.clone())
            },
        )
        .await
        .unwrap();
    let chunks =
        ["ca".as_bytes(), &[0xC3], &[0xA9]].map(|bytes| Ok(Chunk::Bytes(bytes.to_vec().into())));
    reduction
        .truncate(&call, ToolOutput::stream(stream::iter(chunks)))
        .await
        .unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(
        (&seen[0].call, &seen[0].parts, seen[0].is_error),
        (&call, &parts, true)
    );
    assert_eq!(
        (&seen[1].parts[..], seen[1].is_error),
        (&[Part::Text("caé".into())][..], false)
    );
}

#[tokio::test]
async fn t9_a_stream_is_handled_as_a_whole() {
    let store = memory();
    let reduction = small(&store).trunc_handler(later(shout)).build().unwrap();
    let source = || {
        ToolOutput::stream(stream::iter(
            ["a", "b"].map(|text| Ok(Chunk::Bytes(text.into()))),
        ))
    };
    let shown = reduction.truncate(&call("a", "f"), source()).await.unwrap();
    assert_eq!(shown.text(), "AB @memory://t/trunc/a");
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Replaced);
    // The handler gets the content before an error, then the error follows.
    let broken = [
        Ok(Chunk::Bytes("a".into())),
        Err(ToolError::new("pipe broke")),
    ];
    let shown = reduction
        .truncate(&call("b", "f"), ToolOutput::stream(stream::iter(broken)))
        .await
        .unwrap();
    assert_eq!(shown.interrupted.unwrap().to_string(), "pipe broke");
    assert_eq!(shown.parts.len(), 1);
}

#[tokio::test]
async fn t9_kept_bytes_that_are_not_text_are_stored() {
    let store = memory();
    let reduction = small(&store).trunc_handler(later(keep)).build().unwrap();
    let shown = reduction
        .truncate(&call("a", "f"), ToolOutput::bytes(vec![b'x', 0xFF]))
        .await
        .unwrap();
    assert!(Hint::parse(&shown.text()).unwrap().flags.not_utf8);
    assert_eq!(
        stored(&store).await,
        [("memory://t/trunc/a".to_owned(), vec![b'x', 0xFF])]
    );
}

#[tokio::test]
async fn o1_a_tools_handler_precedes_the_general_one_and_skip_beats_both() {
    let all = small(&memory())
        .trunc_handler(later(keep))
        .clear_handler(keep);
    let reduction = all
        .tool(
            "own",
            ToolPolicy::new()
                .trunc_handler(later(shout))
                .clear_handler(shout),
        )
        .tool(
            "skips",
            ToolPolicy::new()
                .skip_truncation(true)
                .skip_clear(true)
                .trunc_handler(later(shout))
                .clear_handler(shout),
        )
        .build()
        .unwrap();
    let shown = async |tool| {
        reduction
            .truncate(&call("a", tool), lines(500))
            .await
            .unwrap()
            .report
    };
    assert_eq!(
        shown("f").await.decisions[0].outcome,
        Outcome::Kept(Reason::Handler)
    );
    assert_eq!(shown("own").await.decisions[0].outcome, Outcome::Replaced);
    assert!(shown("skips").await.decisions.is_empty());
    let mut messages = [
        round("b", "f", lines(99)),
        round("c", "own", lines(99)),
        round("d", "skips", lines(99)),
        round("e", "f", "ok"),
    ]
    .concat();
    let outcomes: Vec<_> = clear(&reduction, &mut messages)
        .await
        .decisions
        .iter()
        .map(|d| d.outcome)
        .collect();
    assert_eq!(
        outcomes[..3],
        [
            Outcome::Kept(Reason::Handler),
            Outcome::Replaced,
            Outcome::Kept(Reason::Excluded)
        ]
    );
}

#[tokio::test]
async fn t9_a_handler_that_fails_or_panics_is_ignored() {
    let plain = small(&memory())
        .build()
        .unwrap()
        .truncate(&call("a", "f"), lines(500))
        .await
        .unwrap()
        .text();
    for (handler, said) in [
        (
            fails as fn(ToolOutcome) -> Wish,
            "the truncation handler failed: no idea",
        ),
        (panics, "the truncation handler panicked"),
    ] {
        let store = memory();
        let reduction = small(&store)
            .trunc_handler(move |outcome| async move { handler(outcome) })
            .build()
            .unwrap();
        for output in [
            ToolOutput::from(lines(500)),
            ToolOutput::stream(stream::iter([Ok(Chunk::Bytes(lines(500).into()))])),
        ] {
            let shown = reduction.truncate(&call("a", "f"), output).await.unwrap();
            assert_eq!(shown.text(), plain);
            let decision = &shown.report.decisions[0];
            assert_eq!(decision.error.as_deref(), Some(said));
            assert_eq!(decision.error_source, Some(ErrorSource::Handler));
        }
        assert_eq!(stored(&store).await[0].1, lines(500).as_bytes());
    }
    // The same goes for a closure that the handler returned.
    let store = memory();
    let bad = |_: ToolOutcome| async {
        Ok(Action::Replace(Replacement::storing("x", |_| -> String {
            panic!("a replacement's panic")
        })))
    };
    let shown = small(&store)
        .trunc_handler(bad)
        .build()
        .unwrap()
        .truncate(&call("a", "f"), lines(500))
        .await
        .unwrap();
    // The handler's content has taken the id by then.
    let location = Hint::parse(&shown.text()).unwrap().location.unwrap();
    assert!(
        location.as_str().starts_with("memory://t/trunc/a-"),
        "{location}"
    );
    assert!(
        stored(&store)
            .await
            .contains(&(location.to_string(), lines(500).into_bytes()))
    );
}

#[tokio::test]
async fn t9_a_slow_handler_delays_only_its_own_call() {
    let (open, gate) = tokio::sync::oneshot::channel::<()>();
    let gate = Arc::new(tokio::sync::Mutex::new(Some(gate)));
    let handler = move |_: ToolOutcome| {
        let gate = gate.clone();
        async move {
            let gate = gate.lock().await.take();
            gate.unwrap().await?;
            Ok(Action::Keep)
        }
    };
    let reduction = small(&memory())
        .tool("slow", ToolPolicy::new().trunc_handler(handler))
        .build()
        .unwrap();
    let slow = tokio::spawn({
        let reduction = reduction.clone();
        async move {
            reduction
                .truncate(&call("a", "slow"), "x")
                .await
                .unwrap()
                .text()
        }
    });
    tokio::task::yield_now().await;
    assert_eq!(
        reduction
            .truncate(&call("b", "f"), "y")
            .await
            .unwrap()
            .text(),
        "y"
    );
    assert!(!slow.is_finished());
    open.send(()).unwrap();
    assert_eq!(slow.await.unwrap(), "x");
}

#[tokio::test]
async fn t9_pages_of_the_reader_are_not_handled() {
    use offcut::agent::Tool;
    let store = memory();
    let reduction = small(&store)
        .tool("read_file", ToolPolicy::new().trunc_handler(later(shout)))
        .build()
        .unwrap();
    reduction
        .truncate(&call("a", "f"), lines(500))
        .await
        .unwrap();
    let asks = ToolCall::new("r", "read_file", r#"{"path":"memory://t/trunc/a"}"#);
    let page = reduction.read_file_tool().call(&asks).await.unwrap();
    let (parts, _) = page.into_parts().await;
    let shown = reduction
        .truncate(&asks, ToolOutput::parts(parts.clone()))
        .await
        .unwrap();
    assert_eq!(shown.parts, parts);
    assert_eq!(store.len(), 1);
}

#[tokio::test]
async fn t8_the_store_fails_under_a_handler() {
    let run = async |then: OnOffloadError| {
        let store = Faulty::new(memory());
        let reduction = small(&memory())
            .backend(store.clone())
            .on_offload_error(then)
            .trunc_handler(later(shout))
            .build()
            .unwrap();
        store.fault_on_every_write(Fault::Fail(ErrorKind::Full));
        reduction.truncate(&call("a", "f"), "text").await
    };
    let kept = run(OnOffloadError::KeepOriginal).await.unwrap();
    assert_eq!(
        (kept.text().as_str(), kept.report.decisions[0].outcome),
        ("text", Outcome::Kept(Reason::StoreFailed))
    );
    let lost = run(OnOffloadError::PreviewOnly).await.unwrap();
    assert_eq!(
        (lost.text().as_str(), lost.report.decisions[0].outcome),
        ("TEXT @nowhere", Outcome::Lost)
    );
    assert!(lost.report.decisions[0].error.is_some());
    assert!(matches!(
        run(OnOffloadError::Fail).await,
        Err(OffloadError { .. })
    ));
}

#[tokio::test]
async fn t9_content_that_a_handler_drops_is_reported_as_lost() {
    let drop = |_: ToolOutcome| async { Ok(Action::Replace(Replacement::discarding("gone"))) };
    let store = memory();
    let shown = small(&store)
        .trunc_handler(drop)
        .build()
        .unwrap()
        .truncate(&call("a", "f"), lines(500))
        .await
        .unwrap();
    assert_eq!(
        (shown.text().as_str(), shown.report.decisions[0].outcome),
        ("gone", Outcome::Lost)
    );
    assert!(store.is_empty());
}

#[tokio::test]
async fn ids_that_handlers_and_callbacks_give_are_names_or_refused() {
    let hostile = [
        "",
        "..",
        "a/b",
        "../../etc/passwd",
        "a\0b",
        &"x".repeat(201),
    ]
    .map(str::to_owned);
    let fine = ["report-1".to_owned(), "x".repeat(200)];
    for id in hostile.iter().chain(&fine) {
        let is_fine = fine.contains(id);
        let expected = if is_fine { id.as_str() } else { "a" };
        let (one, two, three) = (id.clone(), id.clone(), id.clone());
        let by_handler = move |outcome: ToolOutcome| {
            let replacement = Replacement::storing(outcome.text(), |_| "short").id(one.clone());
            async move { Ok(Action::Replace(replacement)) }
        };
        let by_callback = move |_: &ToolCall| Ok(two.clone());
        let builders = [
            small(&memory()).trunc_handler(by_handler),
            small(&memory()).trunc_id_with(by_callback),
            small(&memory())
                .trunc_id_with(|_| Ok("other".into()))
                .trunc_handler(move |outcome: ToolOutcome| {
                    let replacement =
                        Replacement::storing(outcome.text(), |_| "short").id(three.clone());
                    async move { Ok(Action::Replace(replacement)) }
                }),
        ];
        for builder in builders {
            let shown = builder
                .build()
                .unwrap()
                .truncate(&call("a", "f"), lines(500))
                .await
                .unwrap();
            let decision = &shown.report.decisions[0];
            assert_eq!(
                decision.locations[0].as_str(),
                format!("memory://t/trunc/{expected}")
            );
            assert_eq!(decision.error.is_none(), is_fine, "{:?}", decision.error);
        }
    }
}

#[tokio::test]
async fn ids_by_callback_are_used_by_both_phases_and_clashes_get_a_digest() {
    let store = memory();
    let reduction = small(&store)
        .trunc_id_with(|call| Ok(format!("{}-results", call.name)))
        .clear_id_with(|call| Ok(format!("{}-old", call.name)))
        .build()
        .unwrap();
    let mut locations = Vec::new();
    for text in [lines(500), lines(501), lines(500)] {
        let shown = reduction.truncate(&call("a", "f"), text).await.unwrap();
        locations.push(shown.report.decisions[0].locations[0].to_string());
    }
    assert_eq!(
        (locations[0].as_str(), &locations[2]),
        ("memory://t/trunc/f-results", &locations[0])
    );
    assert!(
        locations[1].starts_with("memory://t/trunc/f-results-"),
        "{locations:?}"
    );
    let mut messages = [
        round("b", "f", lines(99)),
        round("c", "f", lines(98)),
        round("d", "f", "ok"),
    ]
    .concat();
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(
        report.decisions[0].locations[0].as_str(),
        "memory://t/clear/f-old"
    );
    assert!(
        report.decisions[1].locations[0]
            .as_str()
            .starts_with("memory://t/clear/f-old-")
    );
    for (message, number) in [(1, 99), (3, 98)] {
        let location = Hint::parse(text(content(&messages[message])))
            .unwrap()
            .location
            .unwrap();
        let original = reduction.read_original(&location).await.unwrap().unwrap();
        assert_eq!(original, lines(number));
    }
    // A callback that fails or panics yields no name.
    for callback in [
        (|_| Err("no".into())) as fn(&ToolCall) -> Result<String, HandlerError>,
        |_| panic!("a callback's panic"),
    ] {
        let reduction = small(&memory()).clear_id_with(callback).build().unwrap();
        let mut messages = [round("b", "f", lines(99)), round("d", "f", "ok")].concat();
        let decision = &clear(&reduction, &mut messages).await.decisions[0];
        assert_eq!(decision.locations[0].as_str(), "memory://t/clear/b");
        assert!(
            decision
                .error
                .as_deref()
                .unwrap()
                .starts_with("the id callback"),
            "{:?}",
            decision.error
        );
        assert_eq!(decision.error_source, Some(ErrorSource::Callback));
    }
}

fn old(text: impl Into<Part>) -> Vec<Message> {
    [round("a", "f", text), round("b", "f", "ok")].concat()
}

#[tokio::test]
async fn c14_a_handler_is_not_asked_about_its_own_replacements() {
    let store = memory();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let reduction = small(&store)
        .clear_handler(move |outcome: ToolOutcome| {
            count.fetch_add(1, Ordering::Relaxed);
            let text = outcome.text();
            let first = text.lines().next().unwrap_or_default().repeat(20);
            Ok(Action::Replace(Replacement::storing(
                text,
                move |location| format!("{first} {}", location.unwrap()),
            )))
        })
        .build()
        .unwrap();
    let mut messages = old(lines(99));
    let before = tokens(&reduction, &mut messages);
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(report.decisions[0].outcome, Outcome::Replaced);
    assert_eq!(
        text(content(&messages[1])),
        format!("{} memory://t/clear/a", "line 1".repeat(20))
    );
    assert_eq!(
        before - tokens(&reduction, &mut messages),
        report.cleared_input_tokens()
    );
    assert_eq!(
        stored(&store).await,
        [("memory://t/clear/a".to_owned(), lines(99).into_bytes())]
    );
    let (asked_once, after) = (asked.load(Ordering::Relaxed), messages.clone());
    messages.splice(2..2, round("c", "f", lines(99)));
    clear(&reduction, &mut messages).await;
    assert_eq!(messages[1], after[1], "L4");
    assert_eq!(
        asked.load(Ordering::Relaxed),
        asked_once + 1,
        "about the new one alone"
    );
    assert_eq!(store.len(), 2);
}

#[tokio::test]
async fn c14_arguments_are_replaced_with_the_result_or_not_at_all() {
    let shorten = |outcome: ToolOutcome| {
        let whole = format!("{}\n{}", outcome.call.arguments, outcome.text());
        Ok(Action::Replace(
            Replacement::storing(whole, |_| "done").arguments(r#"{"short":true}"#),
        ))
    };
    let history = || {
        let mut messages = old(lines(99));
        if let Message::Assistant { calls, .. } = &mut messages[0] {
            calls[0].arguments = format!(r#"{{"long":"{}"}}"#, "x".repeat(200));
        }
        messages
    };
    let arguments = |messages: &[Message]| match &messages[0] {
        Message::Assistant { calls, .. } => calls[0].arguments.clone(),
        _ => String::new(),
    };
    let store = memory();
    let reduction = small(&store)
        .clear_handler(shorten)
        .clear_tool_inputs(true)
        .build()
        .unwrap();
    let mut messages = history();
    let before = tokens(&reduction, &mut messages);
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(arguments(&messages), r#"{"short":true}"#);
    assert_eq!(
        before - tokens(&reduction, &mut messages),
        report.cleared_input_tokens(),
        "C12"
    );
    let subjects: Vec<_> = report.decisions[..2]
        .iter()
        .map(|d| (d.subject, d.outcome))
        .collect();
    assert_eq!(
        subjects,
        [
            (Subject::Arguments, Outcome::Replaced),
            (Subject::Result, Outcome::Replaced)
        ]
    );

    let broken = Faulty::new(memory());
    let reduction = small(&memory())
        .backend(broken.clone())
        .clear_handler(shorten)
        .build()
        .unwrap();
    broken.fault_on_every_write(Fault::Fail(ErrorKind::Full));
    let mut messages = history();
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(messages, history());
    assert!(
        report.decisions.iter().all(|d| !d.outcome.is_change()),
        "{report:?}"
    );

    let nonsense = |_: ToolOutcome| {
        Ok(Action::Replace(
            Replacement::discarding("x").arguments("{no json"),
        ))
    };
    let mut messages = history();
    let report = clear(
        &small(&memory()).clear_handler(nonsense).build().unwrap(),
        &mut messages,
    )
    .await;
    assert_eq!(arguments(&messages), arguments(&history()));
    assert_eq!(
        report.decisions[0].outcome,
        Outcome::Cleared,
        "the default treatment"
    );
    assert!(
        report.decisions[0]
            .error
            .as_deref()
            .unwrap()
            .contains("not valid JSON")
    );
}

#[tokio::test]
async fn c14_a_handler_that_fails_panics_or_returns_more_affects_no_other_result() {
    let bloat = |outcome: ToolOutcome| {
        let longer = outcome.text().repeat(3);
        Ok(Action::Replace(Replacement::discarding(longer)))
    };
    let bad = |_: ToolOutcome| {
        Ok(Action::Replace(Replacement::storing("x", |_| -> String {
            panic!("late")
        })))
    };
    for (handler, expected) in [
        (fails as fn(ToolOutcome) -> Wish, Outcome::Cleared),
        (panics, Outcome::Cleared),
        (bad, Outcome::Cleared),
        (bloat, Outcome::Lost),
    ] {
        let store = memory();
        let reduction = small(&store)
            .tool("odd", ToolPolicy::new().clear_handler(handler))
            .build()
            .unwrap();
        let mut messages = [
            round("a", "odd", lines(99)),
            round("b", "f", lines(99)),
            round("c", "f", "ok"),
        ]
        .concat();
        let before = tokens(&reduction, &mut messages);
        let report = clear(&reduction, &mut messages).await;
        let outcomes: Vec<_> = report.decisions[..2].iter().map(|d| d.outcome).collect();
        assert_eq!(outcomes, [expected, Outcome::Cleared]);
        assert_eq!(
            before.saturating_sub(tokens(&reduction, &mut messages)),
            report.cleared_input_tokens(),
            "C12"
        );
        assert!(
            stored(&store)
                .await
                .contains(&("memory://t/clear/b".to_owned(), lines(99).into_bytes()))
        );
    }
}

#[tokio::test]
async fn c14_without_a_backend_content_that_a_handler_stores_is_reported_as_lost() {
    let reduction = offcut::ToolReduction::builder()
        .token_counter(offcut::TokenCounter::Estimate)
        .skip_truncation(true)
        .max_tokens_for_clear(100)
        .clear_handler(shout)
        .build()
        .unwrap();
    let mut messages = old(lines(99));
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(report.decisions[0].outcome, Outcome::Lost);
    assert!(text(content(&messages[1])).ends_with("@nowhere"));
}

#[tokio::test]
async fn the_post_process_callback_gets_the_conversation_and_the_report_of_a_pass_that_changed_something()
 {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reported = reports.clone();
    let reduction = small(&memory())
        .clear_post_process(move |conversation, report| {
            let log = log.clone();
            Box::pin(async move {
                tokio::task::yield_now().await;
                log.lock()
                    .unwrap()
                    .push((conversation.len(), report.cleared_tool_uses()));
                if report.cleared_tool_uses() > 1 {
                    return Err("too many".into());
                }
                if conversation.len() == 2 {
                    Ok(())
                } else {
                    panic!("a callback's panic")
                }
            })
        })
        .on_report(move |report| {
            reported
                .lock()
                .unwrap()
                .push(report.post_process_error.clone());
        })
        .build()
        .unwrap();
    let mut messages = old(lines(99));
    clear(&reduction, &mut messages).await;
    assert!(
        Hint::parse(text(content(&messages[1]))).is_some(),
        "what the pass did stays done"
    );
    clear(&reduction, &mut messages).await;
    let mut messages = [round("c", "f", lines(99)).to_vec(), old(lines(99))].concat();
    clear(&reduction, &mut messages).await;
    assert_eq!(
        *seen.lock().unwrap(),
        [(4, 1), (6, 2)],
        "a pass that changes nothing is none"
    );
    let errors = reports.lock().unwrap().clone();
    assert_eq!(errors[0].as_deref(), Some("clear_post_process panicked"));
    assert_eq!(errors[1], None);
    assert_eq!(
        errors[2].as_deref(),
        Some("clear_post_process failed: too many")
    );
}

/// Returns the tool's name, its arguments, and as many first lines as fit.
fn first_lines(of: &PreviewOf<'_>) -> String {
    let mut shown = format!("{} {}\n", of.tool, of.arguments);
    for line in of.text.lines() {
        if shown.len() + line.len() >= of.budget {
            break;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

#[tokio::test]
async fn a_custom_preview_is_shown_for_results_and_streams_and_shortened_when_old() {
    let store = memory();
    let reduction = small(&store)
        .preview_with(first_lines)
        .stub_length(60)
        .build()
        .unwrap();
    let asks = ToolCall::new("a", "f", r#"{"x":1}"#);
    let whole = reduction.truncate(&asks, lines(500)).await.unwrap();
    let hint = Hint::parse(&whole.text()).unwrap();
    assert!(
        hint.preview.starts_with("f {\"x\":1}\nline 1\nline 2\n") && hint.preview.len() <= 200,
        "{}",
        hint.preview
    );
    let chunks = lines(500)
        .into_bytes()
        .chunks(7)
        .map(|chunk| Ok(Chunk::Bytes(chunk.to_vec().into())))
        .collect::<Vec<_>>();
    let streamed = reduction
        .truncate(&asks, ToolOutput::stream(stream::iter(chunks)))
        .await
        .unwrap();
    assert_eq!(streamed.text(), whole.text(), "T2");

    let mut messages = vec![
        Message::calls(vec![asks.clone()]),
        Message::tool(&asks, whole.parts, false),
    ];
    messages.extend(round("b", "f", lines(99)));
    messages.extend(round("c", "f", "ok"));
    let report = clear(&reduction, &mut messages).await;
    assert_eq!(
        report.decisions[0].outcome,
        Outcome::Shortened,
        "the preview is known again"
    );
    let stub = Hint::parse(text(content(&messages[1]))).unwrap();
    assert!(
        stub.preview.starts_with("f {\"x\":1}\nline 1\n") && stub.preview.len() <= 60,
        "{}",
        stub.preview
    );
    assert_eq!(
        Hint::parse(text(content(&messages[3])))
            .unwrap()
            .preview
            .lines()
            .next(),
        Some("f {}")
    );
}

#[tokio::test]
async fn a_custom_preview_that_panics_or_is_too_long_is_replaced_by_the_named_one() {
    let plain = small(&memory())
        .build()
        .unwrap()
        .truncate(&call("a", "f"), lines(500))
        .await
        .unwrap()
        .text();
    for (show, said) in [
        (
            (|_| panic!("a preview's panic")) as fn(&PreviewOf<'_>) -> String,
            "the preview panicked",
        ),
        (
            |of| "x".repeat(of.budget + 1),
            "the preview has 201 bytes, over its limit of 200",
        ),
    ] {
        let shown = small(&memory()).preview_with(show).build().unwrap();
        let shown = shown.truncate(&call("a", "f"), lines(500)).await.unwrap();
        assert_eq!(
            (shown.text(), shown.report.decisions[0].error.as_deref()),
            (plain.clone(), Some(said))
        );
        let source = shown.report.decisions[0].error_source;
        assert_eq!(source, Some(ErrorSource::Callback));
    }
}

#[tokio::test]
async fn a_clear_pass_reports_that_a_users_preview_failed() {
    let reduction = small(&memory()).stub_length(300);
    let reduction = reduction.preview_with(|_| panic!("a preview's panic"));
    let reduction = reduction.build().unwrap();
    let mut messages: Vec<Message> = (0..8)
        .flat_map(|n| round(&format!("r{n}"), "f", lines(80)))
        .collect();
    let report = clear(&reduction, &mut messages).await;
    let cleared: Vec<_> = (report.decisions.iter())
        .filter(|decision| decision.outcome == Outcome::Cleared)
        .collect();
    assert!(!cleared.is_empty());
    for decision in cleared {
        let said = (decision.error.as_deref(), decision.error_source);
        let failed = (Some("the preview panicked"), Some(ErrorSource::Callback));
        assert_eq!(said, failed);
    }
}

#[tokio::test]
async fn o1_previews_by_name_and_by_code_override_each_other() {
    let preview = async |builder: Builder, tool: &str| {
        let shown = builder
            .build()
            .unwrap()
            .truncate(&call("a", tool), lines(500))
            .await
            .unwrap();
        Hint::parse(&shown.text()).unwrap().preview
    };
    let fixed = |_: &PreviewOf<'_>| "fixed".to_owned();
    let ends = Preview::HeadTail.show(&lines(500), 200);
    let all = || small(&memory()).preview_with(fixed);
    assert_eq!(preview(all(), "f").await, "fixed");
    assert_eq!(preview(all().preview(Preview::HeadTail), "f").await, ends);
    let named = || ToolPolicy::new().preview(Preview::HeadTail);
    assert_eq!(preview(all().tool("f", named()), "f").await, ends);
    assert_eq!(preview(all().tool("f", named()), "g").await, "fixed");
    let own = ToolPolicy::new().preview_with(|_| "own".to_owned());
    assert_eq!(preview(all().tool("f", own.clone()), "f").await, "own");
    assert_eq!(preview(small(&memory()).tool("f", own), "g").await, ends);
}

#[tokio::test]
async fn l1_a_report_callback_that_panics_loses_no_result() {
    let store = memory();
    let reduction = builder(&store)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .max_tokens_for_clear(500);
    let reduction = reduction
        .on_report(|_| panic!("a callback's panic"))
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("a", "f"), lines(400))
        .await
        .unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Truncated);
    let mut messages: Vec<Message> = (0..8)
        .flat_map(|n| round(&format!("r{n}"), "f", lines(80)))
        .collect();
    assert!(clear(&reduction, &mut messages).await.is_change());
}

#[tokio::test]
async fn l1_a_counter_that_panics_loses_no_result() {
    let counter = |text: &str| -> u64 { panic!("{} bytes were counted", text.len()) };
    let store = memory();
    let reduction = builder(&store)
        .count_tokens_with(counter)
        .max_length_for_trunc(1_000);
    let reduction = reduction
        .preview_length(200)
        .max_tokens_for_clear(500)
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("a", "f"), lines(400))
        .await
        .unwrap();
    assert_eq!(shown.report.decisions[0].outcome, Outcome::Truncated);
    let mut messages: Vec<Message> = (0..8)
        .flat_map(|n| round(&format!("r{n}"), "f", lines(80)))
        .collect();
    assert!(clear(&reduction, &mut messages).await.is_change());
}
