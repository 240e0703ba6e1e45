//! Helpers for the rules' tests.
#![allow(dead_code, reason = "each test file uses some of it")]
#![allow(clippy::expect_used, reason = "a test that can't be set up has failed")]

use offcut::backend::{Backend, Memory};
use offcut::format::{Message, Messages, Plain};
use offcut::report::Decision;
use offcut::{Builder, Part, Report, TokenCounter, ToolCall, ToolReduction};

/// A reduction over a memory store with locations below `memory://t/`. Loads no tokenizer.
pub(crate) fn builder(store: &Memory) -> Builder {
    ToolReduction::builder()
        .backend(store.clone())
        .token_counter(TokenCounter::Estimate)
}

pub(crate) fn memory() -> Memory {
    Memory::named("t").expect("a safe name")
}

pub(crate) fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall::new(id, tool, "{}")
}

/// `n` numbered lines.
pub(crate) fn lines(n: usize) -> String {
    (1..=n).map(|n| format!("line {n}\n")).collect()
}

pub(crate) fn text(parts: &[Part]) -> &str {
    match parts {
        [Part::Text(text)] => text,
        other => panic!("not one text: {other:?}"),
    }
}

/// One round: an assistant's call and its result.
pub(crate) fn round(id: &str, tool: &str, content: impl Into<Part>) -> [Message; 2] {
    let call = call(id, tool);
    [
        Message::calls(vec![call.clone()]),
        Message::tool(&call, vec![content.into()], false),
    ]
}

/// The content of a tool message.
pub(crate) fn content(message: &Message) -> &[Part] {
    match message {
        Message::Tool { content, .. } => content,
        other => panic!("no result: {other:?}"),
    }
}

pub(crate) async fn clear(reduction: &ToolReduction, messages: &mut [Message]) -> Report {
    reduction.clear(Plain, messages).await.expect("a pass")
}

pub(crate) fn tokens(reduction: &ToolReduction, messages: &mut [Message]) -> u64 {
    reduction.count_tokens(&Messages::new(Plain, messages), &[])
}

/// Everything stored, by location.
pub(crate) async fn stored(store: &impl Backend) -> Vec<(String, Vec<u8>)> {
    use futures_util::TryStreamExt;
    let entries: Vec<_> = store.list().try_collect().await.expect("a list");
    let mut all = Vec::new();
    for entry in entries {
        let page = store
            .read(&entry.key, 0..u64::MAX)
            .await
            .expect("what is listed");
        all.push((store.locate(&entry.key).to_string(), page.bytes.to_vec()));
    }
    all.sort();
    all
}

pub(crate) fn outcomes(report: &Report) -> Vec<(String, offcut::report::Outcome)> {
    report
        .decisions
        .iter()
        .map(
            |Decision {
                 call_id, outcome, ..
             }| (call_id.clone(), *outcome),
        )
        .collect()
}
