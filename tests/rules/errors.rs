//! Errors as people see them: with all their causes, each said once.
#![cfg(feature = "fs")]

use std::error::Error as StdError;

use crate::common::{builder, call, lines, memory};
use offcut::agent::Tool;
use offcut::backend::{self, ErrorKind, Fs};
use offcut::{OffloadError, OnOffloadError, Settings, ToolCall, ToolError, ToolReduction};
use offcut_testkit::{Fault, Faulty};
use serde_json::json;

/// Checks that no error repeats the message of its source, which people would read twice and models
/// would pay for.
fn says_each_once(error: &(dyn StdError + 'static)) {
    let mut above = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        assert!(
            !text.is_empty() && !above.contains(&text),
            "`{above}` repeats its source `{text}`"
        );
        above = text;
        next = source.source();
    }
}

#[tokio::test]
async fn h3_no_error_repeats_its_source() {
    let store = Faulty::new(memory());
    let reduction = ToolReduction::builder()
        .backend(store.clone())
        .max_length_for_trunc(1_000)
        .preview_length(200);
    let reduction = reduction
        .on_offload_error(OnOffloadError::Fail)
        .build()
        .unwrap();
    let shown = reduction
        .truncate(&call("a", "grep"), lines(400))
        .await
        .unwrap();
    let location = shown.report.decisions[0].locations[0].to_string();

    store.fault_on_next_read(Fault::Fail(ErrorKind::Denied));
    let read = ToolCall::new("r", "read_file", json!({"path": location}).to_string());
    says_each_once(&reduction.read_file_tool().call(&read).await.unwrap_err());
    says_each_once(
        &reduction
            .read_file_tool()
            .call(&call("r", "read_file"))
            .await
            .unwrap_err(),
    );

    store.fault_on_next_write(Fault::Fail(ErrorKind::Unavailable));
    let error = reduction
        .truncate(&ToolCall::new("b\n\u{1b}[2J", "a\nb", "{}"), lines(400))
        .await
        .unwrap_err();
    assert!(!error.to_string().chars().any(char::is_control), "{error}");
    says_each_once(&error);
    let error = ToolError::from(error);
    says_each_once(&error);
    assert!(
        error.source().unwrap().is::<OffloadError>(),
        "a program finds out what it was"
    );

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"\xff\xfe").unwrap();
    says_each_once(&Fs::open(file.join("below")).unwrap_err());
    says_each_once(&backend::open("memory:../x").unwrap_err());
    says_each_once(&Settings::from_json("{\"max_length_for_trunc\": \"x\"}").unwrap_err());
    says_each_once(&builder(&memory()).root_dir("../x").build().unwrap_err());
    let settings = Settings::from_json(r#"{"backend": "s3://bucket/prefix"}"#).unwrap();
    says_each_once(
        &ToolReduction::builder()
            .settings(settings, backend::open)
            .build()
            .unwrap_err(),
    );
}

#[test]
fn an_error_returned_from_main_prints_its_causes_in_one_line() {
    let returned = |error: &dyn std::fmt::Debug| format!("Error: {error:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let store = file.join("below");
    let settings = json!({"backend": store.to_str().unwrap()}).to_string();
    let unopened = ToolReduction::builder()
        .settings(Settings::from_json(&settings).unwrap(), backend::open)
        .build()
        .unwrap_err();
    let message = unopened.to_string();
    assert!(
        message.contains("can't be opened: ") && message.contains("os error"),
        "the cause is not hidden: {message}"
    );
    let errors = [
        returned(&unopened),
        returned(&Settings::from_json("{\"langauge\": \"zh\"}").unwrap_err()),
        returned(&Fs::open(&store).unwrap_err()),
        returned(&backend::Key::new("../x").unwrap_err()),
        returned(&builder(&memory()).root_dir("../x").build().unwrap_err()),
        returned(&ToolError::new("no such table").with_source(std::io::Error::other("asleep"))),
    ];
    let errors = errors
        .join("\n")
        .replace(folder.path().to_str().unwrap(), "DIR");
    insta::assert_snapshot!(errors, @r#"
    Error: the `backend` of all tools, `DIR/file/below`, can't be opened: opening the store in "DIR/file/below" failed: its directory can't be made there: part of the path is not a directory that takes one; move that away, or choose another path: Not a directory (os error 20)
    Error: line 1, `langauge`: unknown field; did you mean `language`?
    Error: opening the store in "DIR/file/below" failed: its directory can't be made there: part of the path is not a directory that takes one; move that away, or choose another path: Not a directory (os error 20)
    Error: a path of 4 bytes is not a safe key: use 1 to 16 segments of ASCII letters, digits, '.', '_' and '-', none that begins or ends with '.', at most 900 bytes in all
    Error: `root_dir` must be a safe path of at most 8 segments and 400 bytes without `trunc`, `clear` or `meta`: leave it empty, or use a name such as `agent-1`: a path of 4 bytes is not a safe key: use 1 to 16 segments of ASCII letters, digits, '.', '_' and '-', none that begins or ends with '.', at most 900 bytes in all
    Error: no such table: asleep
    "#);
}

#[test]
fn debug_shows_no_schema() {
    use offcut::format::{Message, Messages, Plain};
    let mut messages = [Message::user("a secret")];
    let mut messages = Messages::new(Plain, &mut messages);
    let tools = [json!({"name": "grep", "description": "a secret"})];
    let turn = offcut::Turn {
        tools: &tools,
        last_usage: Some(7),
        ..offcut::Turn::new(&mut messages)
    };
    insta::assert_snapshot!(format!("{turn:?}"), @"Turn { conversation: 1 messages, tools: 1, last_usage: Some(7), is_too_long: false, is_cold: false, repeats_only: false }");
}

#[tokio::test]
async fn o2_the_limit_that_an_error_advises_is_accepted() {
    let build = |limit: usize| builder(&memory()).max_length_for_trunc(limit).build();
    let error = build(0).unwrap_err().to_string();
    let advised = error
        .split("at least ")
        .nth(1)
        .and_then(|rest| rest.split(',').next())
        .unwrap()
        .parse()
        .unwrap();
    assert!(build(advised).is_ok(), "{error}");
    assert!(build(advised - 1).is_err(), "{error}");
}
