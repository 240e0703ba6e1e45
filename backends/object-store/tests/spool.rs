//! The spool, which keeps what the store fails to take (T12).

#![allow(clippy::unwrap_used, reason = "what helps tests is part of them")]

#[path = "server/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use hyper::Method;
use offcut::agent::Tool;
use offcut::backend::{Backend, ErrorKind, Key, Location, PutOutcome};
use offcut::format::{Message, Plain};
use offcut::hint::Hint;
use offcut::report::Outcome;
use offcut::{Body, Chunk, Part, TokenCounter, ToolCall, ToolOutput, ToolReduction};
use offcut_object_store::Objects;

use server::{ALL, Fault, MAX_SINGLE_PUT, Server, key, named, noise, written};

/// Makes everything fail that stores.
fn fail(server: &Server, status: u16) {
    server.fault_always(&Method::PUT, Fault::Refuse(status));
    server.fault_always(&Method::POST, Fault::Refuse(status));
}

async fn keys(store: &Objects) -> Vec<Key> {
    let keys = store.list().map_ok(|entry| entry.key);
    keys.try_collect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn t12_content_that_cannot_be_uploaded_is_kept() {
    for length in [1_000, MAX_SINGLE_PUT + 1] {
        let server = Server::start().await;
        let store = server.open_impatient("p");
        store.check().await.unwrap();
        let (content, named) = (noise(length, 9), named(&noise(length, 9)));
        fail(&server, 503);
        let mut writer = written(&store, &content).await;
        let plain = key("trunc/call_1");
        assert_eq!(writer.finish(&plain).await.unwrap(), PutOutcome::Taken);
        assert_eq!(writer.read(5..10).await.unwrap(), content.slice(5..10));
        let before = server.requests(&Method::PUT);
        assert_eq!(writer.finish(&named).await.unwrap(), PutOutcome::Stored);
        if length < MAX_SINGLE_PUT {
            assert_eq!(server.requests(&Method::PUT), before, "it failed already");
        }
        assert!(writer.finish(&named).await.is_err(), "it is done");
        server.heal();

        // Another process on this machine finds it under the store's own location.
        let again = server.open("p");
        let found = again.resolve(store.locate(&named).as_str()).unwrap();
        assert_eq!(again.read(&found, ALL).await.unwrap().bytes, content);
        assert_eq!(keys(&again).await, std::slice::from_ref(&named));
        assert!(server.open("q").read(&named, 0..1).await.is_err());

        // Its name is in use, and the store is not asked.
        for (other, is_same) in [(content.clone(), true), ("other".into(), false)] {
            let puts = [
                again.put(&named, other.clone()).await.unwrap(),
                written(&again, &other).await.finish(&named).await.unwrap(),
            ];
            for put in puts {
                let is_there = matches!(put, PutOutcome::AlreadyThere { .. });
                assert_eq!((is_there, put == PutOutcome::Taken), (is_same, !is_same));
            }
        }
        let objects = server.buckets().objects();
        assert!(objects.is_empty(), "{:?}", objects.keys());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t12_what_the_spool_does_not_keep_fails_with_the_error_of_the_store() {
    let server = Server::start().await;
    let store = server.open("p");
    store.check().await.unwrap();
    let content = Bytes::from("content");
    fail(&server, 403);

    // The trial of a store must not pass because of its spool.
    let trial = key(named(&content).as_str().replace("trunc", "meta").as_str());
    let mut writer = written(&store, &content).await;
    let error = writer.finish(&trial).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(keys(&store).await, []);

    let mut writer = written(&store, &content).await;
    let plain = key("trunc/call_1");
    assert_eq!(writer.finish(&plain).await.unwrap(), PutOutcome::Taken);
    std::fs::remove_dir_all(server.spool()).unwrap();
    std::fs::write(server.spool(), "not a directory").unwrap();
    let error = writer.finish(&named(&content)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(
        error
            .to_string()
            .contains("storing s3://bucket/p/trunc/call_1 failed")
    );
    assert_eq!(writer.read(ALL).await.unwrap(), content);
}

fn lines(n: usize) -> String {
    (1..=n).map(|n| format!("line {n}\n")).collect()
}

fn reduction(store: &Objects) -> ToolReduction {
    ToolReduction::builder()
        .backend(store.clone())
        .token_counter(TokenCounter::Estimate)
        .max_length_for_trunc(1_000)
        .preview_length(200)
        .max_tokens_for_clear(1)
        .clear_retention_suffix_limit(0)
        .build()
        .unwrap()
}

fn output(text: &str) -> ToolOutput {
    let bytes = text.as_bytes().chunks(97).map(Bytes::copy_from_slice);
    let chunks: Vec<_> = bytes.map(|bytes| Ok(Chunk::Bytes(bytes))).collect();
    ToolOutput::stream(stream::iter(chunks))
}

fn hints(parts: &[Part]) -> Vec<Hint> {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    texts.map(|text| Hint::parse(text).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn t12_hints_to_the_spool_are_like_all_others() {
    let server = Server::start().await;
    let store = server.open("p");
    store.check().await.unwrap();
    fail(&server, 403);
    let reduction = reduction(&store);
    // Two results of one id, one of them twice; ids that are not names.
    for (id, length) in [("a", 400), ("a", 401), ("a", 400), ("", 402), ("../a", 403)] {
        let text = lines(length);
        let call = ToolCall::new(id, "f", "{}");
        let shown = reduction.truncate(&call, output(&text)).await.unwrap();
        let decision = &shown.report.decisions[0];
        assert_eq!(decision.outcome, Outcome::Truncated, "{id}");
        assert_eq!(decision.error, None);
        let hint = hints(&shown.parts).remove(0);
        assert_eq!(hint.prose, "Stored in full. Read it with read_file.");
        let location = hint.location.unwrap();
        assert!(location.as_str().starts_with("s3://bucket/p/trunc/"));
        let original = reduction.read_original(&location).await.unwrap();
        assert_eq!(original.unwrap(), text, "{location}");
        let page = first_page(&reduction, &location).await;
        assert!(page.starts_with("line 1\n"));
    }
    assert_eq!(keys(&store).await.len(), 4);
    assert_eq!(server.buckets().objects().len(), 0);
}

async fn first_page(reduction: &ToolReduction, location: &Location) -> String {
    let call = ToolCall::new("r", "read_file", format!("{{\"path\": \"{location}\"}}"));
    let output = reduction.read_file_tool().call(&call).await.unwrap();
    match output.body {
        Body::Parts(parts) => hints(&parts).remove(0).preview,
        other => panic!("a page is whole: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c5_a_hint_to_the_spool_is_shortened_and_still_leads_there() {
    let server = Server::start().await;
    let store = server.open("p");
    store.check().await.unwrap();
    fail(&server, 403);
    let reduction = reduction(&store);
    let call = ToolCall::new("a", "f", "{}");
    let shown = reduction
        .truncate(&call, output(&lines(400)))
        .await
        .unwrap();
    let long = hints(&shown.parts).remove(0);
    server.heal();
    let mut messages = vec![
        Message::user("go"),
        Message::calls(vec![call.clone()]),
        Message::tool(&call, shown.parts, false),
        Message::assistant("done"),
    ];
    let report = reduction.clear(&Plain, &mut messages).await.unwrap();
    assert_eq!(report.decisions[0].outcome, Outcome::Shortened);
    let Message::Tool { content, .. } = &messages[2] else {
        panic!("no result")
    };
    let short = hints(content).remove(0);
    assert_eq!(short.location, long.location);
    assert!(short.render().len() < long.render().len());
    assert_eq!(server.buckets().objects().len(), 0, "no second copy");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_spool_is_private_and_left_empty() {
    let server = Server::start().await;
    let store = server.open("p");
    let mut writer = written(&store, &noise(100_000, 1)).await;
    let files = || {
        walk(server.spool())
            .into_iter()
            .filter(|path| path.is_file())
            .collect::<Vec<_>>()
    };
    assert_eq!(files().len(), 1, "the content is there");
    #[cfg(unix)]
    for path in walk(server.spool()) {
        use std::os::unix::fs::PermissionsExt;
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(
            mode,
            if path.is_dir() { 0o700 } else { 0o600 },
            "{}",
            path.display()
        );
    }
    writer.finish(&key("trunc/call_1")).await.unwrap();
    assert_eq!(files(), Vec::<std::path::PathBuf>::new());
    drop(written(&store, &noise(100_000, 2)).await);
    assert_eq!(files(), Vec::<std::path::PathBuf>::new());
}

fn walk(path: &std::path::Path) -> Vec<std::path::PathBuf> {
    let inner = path.read_dir().unwrap().map(|entry| entry.unwrap().path());
    inner
        .flat_map(|path| {
            if path.is_dir() {
                [vec![path.clone()], walk(&path)].concat()
            } else {
                vec![path]
            }
        })
        .collect()
}
