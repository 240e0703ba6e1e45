//! L8: what a pass allocates is linear in what it counts, and what a whole history allocates is linear in its body.
//!
//! It has its own program because allocations of other tests would count too.
#![cfg(feature = "tiktoken")]
// Helpers may unwrap, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::alloc::System;
use std::ops::Range;

use offcut::backend::Memory;
use offcut::format::{Messages, OpenAiChat, RequestBody};
use offcut::report::{Decision, Outcome};
use offcut::{Builder, Report, TokenCounter, ToolCall, ToolReduction, Turn};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Makes rounds with text, JSON parts, JSON arguments and an image.
fn history(rounds: usize) -> Vec<Value> {
    numbered_history(0..rounds)
}

fn numbered_history(rounds: Range<usize>) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "Go."})];
    for round in rounds {
        let call = ToolCall::new(format!("call_{round}"), "grep", "{}");
        let function = json!({"name": "grep", "arguments": {"pattern": "a.b", "limit": round}});
        messages.push(
            json!({"role": "assistant", "tool_calls": [{"id": call.id, "function": function}]}),
        );
        let text = format!("src/{round}.rs: a line that was found\n").repeat(20);
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA"}});
        let content = json!([{"type": "text", "text": text}, {"type": "new", "n": round}, image]);
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": content}));
    }
    messages.push(json!({"role": "assistant", "content": "Done."}));
    messages
}

/// Counts the allocations of the last of several passes, because the first one counts the tokens.
fn allocations(
    reduction: &ToolReduction,
    messages: &mut [Value],
    last_usage: Option<u64>,
) -> (usize, Report) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let tools = [json!({"name": "grep", "parameters": {"type": "object"}})];
    let mut last = None;
    for _ in 0..3 {
        let mut conversation = Messages::new(OpenAiChat, messages);
        let region = Region::new(ALLOCATOR);
        let mut turn = Turn {
            tools: &tools,
            last_usage,
            ..Turn::new(&mut conversation)
        };
        let report = runtime.block_on(reduction.clear_turn(&mut turn)).unwrap();
        let stats = region.change();
        last = Some((stats.allocations + stats.reallocations, report));
    }
    last.unwrap()
}

/// Compares 20 rounds with 2 000, a hundred times as many, which may take `growth` times as many allocations.
fn assert_growth(
    name: &str,
    growth: usize,
    builder: impl Fn(u64) -> Builder,
    last_usage: Option<u64>,
) {
    let counts = [20, 2_000].map(|rounds| {
        let mut messages = history(rounds);
        let reduction = builder(rounds as u64)
            .backend(Memory::new())
            .build()
            .unwrap();
        let (count, report) = allocations(&reduction, &mut messages, last_usage);
        assert!(
            report.decisions.is_empty() && !report.is_change(),
            "{name}: triggered"
        );
        count
    });
    assert!(
        counts[1] <= growth * counts[0] && counts[0] < 20 * 20,
        "{name}: {counts:?} allocations"
    );
}

/// Tests run in parallel, so there is one.
#[test]
fn l8_allocations_are_linear_in_what_is_counted() {
    an_untriggered_pass_allocates_for_what_it_counts();
    what_a_whole_history_allocates_is_linear_in_its_body();
}

/// The bytes that a new process allocates for its first call, over a history of `rounds` rounds, for
/// each byte of the body. All results are truncated.
fn allocated_for_whole_history(rounds: usize) -> f64 {
    // With four digits, each result is over the limit.
    let messages = numbered_history(1_000..1_000 + rounds);
    let body = json!({"model": "m", "messages": messages}).to_string();
    let length = body.len();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let reduction = ToolReduction::builder()
        .backend(Memory::new())
        .token_counter(TokenCounter::Estimate)
        .max_length_for_trunc(680)
        .preview_length(100)
        .max_tokens_for_clear(rounds as u64 * 50)
        .build()
        .unwrap();
    let region = Region::new(ALLOCATOR);
    let mut body = RequestBody::parse(body).unwrap();
    let report = runtime.block_on(reduction.reduce_body(&mut body)).unwrap();
    let sent = body.to_string();
    let allocated = region.change().bytes_allocated;
    let is_truncated = |decision: &&Decision| decision.outcome == Outcome::Truncated;
    assert_eq!(report.decisions.iter().filter(is_truncated).count(), rounds);
    assert!(sent.len() < length * 3 / 4);
    allocated as f64 / length as f64
}

fn what_a_whole_history_allocates_is_linear_in_its_body() {
    let shares = [200, 3_200].map(allocated_for_whole_history);
    // Tables grow by doubling.
    assert!(shares[1] < 1.5 * shares[0], "{shares:?}");
}

fn an_untriggered_pass_allocates_for_what_it_counts() {
    // Loads the tables before the test.
    TokenCounter::O200kBase.build().unwrap().count("");
    // More than the tokens and fewer than the bytes, so everything is counted.
    let counted = |rounds: u64| ToolReduction::builder().max_tokens_for_clear(rounds * 2_000);
    assert_growth("counted", 100, counted, None);
    assert_growth(
        "bounded by bytes",
        100,
        |_| ToolReduction::builder().max_tokens_for_clear(u64::MAX),
        None,
    );
    // Only the last turn is counted.
    assert_growth("anchored", 1, |_| ToolReduction::builder(), Some(1_000));
    let estimated = |_| {
        ToolReduction::builder()
            .token_counter(TokenCounter::Estimate)
            .max_tokens_for_clear(u64::MAX)
    };
    assert_growth("estimated", 100, estimated, None);

    // A memory with decisions, in a loop that changes its messages in place.
    let counts = [20, 2_000].map(|rounds| {
        let mut messages = history(rounds);
        let reduction = ToolReduction::builder()
            .backend(Memory::new())
            .max_tokens_for_clear(rounds as u64 * 1_450)
            .build()
            .unwrap();
        let (count, report) = allocations(&reduction, &mut messages, None);
        assert!(report.decisions.is_empty(), "{:?}", report.tokens);
        let hints = messages
            .iter()
            .filter(|message| message.to_string().contains("[offcut/1 cleared"));
        assert!(
            hints.count() > 0,
            "nothing was cleared: {:?}",
            report.tokens
        );
        count
    });
    assert!(
        counts[1] <= 100 * counts[0] && counts[0] < 20 * 20,
        "after a clearing: {counts:?} allocations"
    );
}
