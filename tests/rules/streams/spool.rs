//! A store with a spool, which fails permanently (T12).

use std::collections::VecDeque;

use offcut::agent::Tool;
use offcut::backend::{ErrorKind, Location};
use offcut::format::{Message, Plain};
use offcut::hint::{Hint, Kind};
use offcut::report::Outcome;
use offcut::{Body, OnStoreFailure, Part, ToolCall, ToolOutput, ToolReduction};
use offcut_testkit::Fault;
use serde_json::json;

use super::rigged::Rigged;
use super::{LIMIT, PREVIEW, chunks, go, output};
use crate::common::{call, content, lines, stored, text};

fn reduction(store: &Rigged, then: OnStoreFailure) -> ToolReduction {
    let builder = ToolReduction::builder()
        .backend(store.clone())
        .token_counter(offcut::TokenCounter::Estimate);
    let builder = builder
        .max_length_for_trunc(LIMIT)
        .preview_length(PREVIEW)
        .on_offload_error(then);
    builder
        .max_tokens_for_clear(1)
        .clear_retention_suffix_limit(0)
        .build()
        .unwrap()
}

fn broken() -> Rigged {
    let store = Rigged::with_spool();
    store
        .store
        .fault_on_every_write(Fault::Fail(ErrorKind::Denied));
    store
}

const MODES: [OnStoreFailure; 3] = [
    OnStoreFailure::KeepOriginal,
    OnStoreFailure::PreviewOnly,
    OnStoreFailure::Fail,
];

#[tokio::test]
async fn t12_the_spool_keeps_what_the_store_could_not_take() {
    let content = lines(400);
    for then in MODES {
        for id in ["a", "", "../a"] {
            let store = broken();
            let reduction = reduction(&store, then);
            let shown = go(&reduction, &call(id, "f"), output(chunks(&content, 97))).await;
            let hint = Hint::parse(text(&shown.parts)).unwrap();
            assert!(
                hint.flags.local && hint.prose.contains("The store failed"),
                "{then:?}"
            );
            let location = hint.location.unwrap();
            assert!(
                location.as_str().starts_with("memory://spool/trunc/"),
                "{location}"
            );
            assert_eq!(shown.outcome(), Outcome::Truncated);
            let decision = &shown.report.unwrap().decisions[0];
            assert!(decision.error.is_some() && decision.locations == [location.clone()]);
            assert_eq!(
                reduction.read_original(&location).await.unwrap().unwrap(),
                content
            );
            assert_eq!(reads_back(&reduction, &location).await, content);
            assert!(stored(&store.store).await.is_empty());
        }
    }
}

/// Reads everything with the model's reader, page by page.
async fn reads_back(reduction: &ToolReduction, location: &Location) -> String {
    let (mut all, mut offsets) = (String::new(), VecDeque::from([json!(1)]));
    while let Some(offset) = offsets.pop_front() {
        let arguments = json!({ "path": location.as_str(), "offset": offset }).to_string();
        let output = reduction
            .read_file_tool()
            .call(&ToolCall::new("r", "read_file", arguments))
            .await
            .unwrap();
        let ToolOutput {
            body: Body::Parts(parts),
            ..
        } = output
        else {
            panic!("a page is whole")
        };
        let page = Hint::parse(text(&parts)).unwrap();
        offsets.extend(
            page.prose
                .split_once("offset ")
                .map(|(_, next)| json!(next.trim_end_matches('.'))),
        );
        all.push_str(&page.preview);
    }
    all
}

#[tokio::test]
async fn t12_two_spooled_results_of_one_id_overwrite_nothing() {
    let store = broken();
    let reduction = reduction(&store, OnStoreFailure::KeepOriginal);
    for n in [400, 401, 400] {
        let shown = go(&reduction, &call("a", "f"), output(chunks(lines(n), 97))).await;
        let location = Hint::parse(text(&shown.parts)).unwrap().location.unwrap();
        assert_eq!(
            reduction.read_original(&location).await.unwrap().unwrap(),
            lines(n)
        );
    }
    assert_eq!(stored(store.spool.as_ref().unwrap()).await.len(), 2);
}

#[tokio::test]
async fn c5_a_hint_that_names_the_spool_is_shortened_and_still_names_it() {
    let store = broken();
    let reduction = reduction(&store, OnStoreFailure::KeepOriginal);
    let shown = go(&reduction, &call("a", "f"), output(chunks(lines(400), 97))).await;
    let long = Hint::parse(text(&shown.parts)).unwrap();
    store.store.heal();
    let mut messages = vec![
        Message::user("go"),
        Message::calls(vec![call("a", "f")]),
        Message::tool(&call("a", "f"), shown.parts, false),
        Message::assistant("done"),
    ];
    let report = reduction.clear(Plain, &mut messages).await.unwrap();
    assert_eq!(report.decisions[0].outcome, Outcome::Shortened);
    let short = Hint::parse(text(content(&messages[2]))).unwrap();
    assert_eq!(
        (short.kind, &short.location, short.flags),
        (Kind::Cleared, &long.location, long.flags)
    );
    assert!(short.render().len() < long.render().len());
    assert!(stored(&store.store).await.is_empty(), "no second copy");

    let after = messages.clone();
    let again = self::reduction(&store, OnStoreFailure::KeepOriginal);
    assert!(!again.clear(Plain, &mut messages).await.unwrap().is_change());
    assert_eq!(messages, after, "L4");
    let location = short.location.unwrap();
    assert_eq!(
        again.read_original(&location).await.unwrap().unwrap(),
        lines(400)
    );
}

/// Each of several spilled texts is kept in the spool separately.
#[tokio::test]
async fn t12_several_texts_are_kept_one_by_one() {
    let store = broken();
    let reduction = reduction(&store, OnStoreFailure::KeepOriginal);
    let mut came = chunks(lines(400), 97);
    came.push(offcut::Chunk::Part(Part::Link {
        mime: None,
        url: "https://example.org".into(),
    }));
    came.extend(chunks(lines(300), 50));
    let shown = go(&reduction, &call("a", "f"), output(came)).await;
    for (part, content) in [(&shown.parts[0], lines(400)), (&shown.parts[2], lines(300))] {
        let Part::Text(text) = part else {
            panic!("no text")
        };
        let hint = Hint::parse(text).unwrap();
        assert!(hint.flags.local);
        let location = hint.location.unwrap();
        assert_eq!(
            reduction.read_original(&location).await.unwrap().unwrap(),
            content,
            "{location}"
        );
    }
}
