//! The cost of whole histories: a process that meets a conversation of 1 MB for the first time, and its
//! next calls, compared with counting the conversation's texts once. Ratios within one run.
//!
//! `cargo bench -p offcut-lab --bench histories`. The last line is JSON.
// A bench that can't be set up has failed, and benches print.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::time::Duration;

use offcut::backend::Memory;
use offcut::format::{LoopFormat, Messages, OpenAiChat};
use offcut::{Settings, ToolCall, ToolReduction};
use offcut_cli::trials::Random;
use offcut_lab::texts::{code, json as json_text};
use offcut_lab::{fastest, is_bench, time};
use offcut_testkit::Faulty;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Number of rounds in a history of 1 MB, with results of 1 to 15 kB.
const ROUNDS: usize = 130;

fn round(id: usize, random: &mut Random) -> [Value; 2] {
    let arguments = format!(r#"{{"pattern":"fn {id}","path":"src"}}"#);
    let call = ToolCall::new(format!("call_{id:016}"), "grep", arguments);
    let function = json!({"name": call.name, "arguments": call.arguments});
    let calls = json!([{"id": call.id, "type": "function", "function": function}]);
    let length = [1_000, 3_000, 12_000, 15_000][id % 4];
    let make = if id.is_multiple_of(2) {
        code
    } else {
        json_text
    };
    let mut text = make(random, length);
    text.truncate(length);
    [
        json!({"role": "assistant", "content": null, "tool_calls": calls}),
        OpenAiChat.tool_message(&call, vec![text.into()], false),
    ]
}

fn process(settings: &Settings, store: &Faulty<Memory>) -> ToolReduction {
    let builder = ToolReduction::builder().settings(settings.clone(), offcut::backend::open);
    builder.backend(store.clone()).build().unwrap()
}

fn reduce(
    runtime: &Runtime,
    reduction: &ToolReduction,
    messages: &[Value],
) -> (Duration, Vec<Value>) {
    let mut sent = messages.to_vec();
    let (took, report) = time(|| runtime.block_on(reduction.reduce(OpenAiChat, &mut sent)));
    assert_eq!(report.unwrap().records_error, None);
    (took, sent)
}

fn main() {
    let (rounds, times) = if is_bench() { (ROUNDS, 9) } else { (6, 1) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut random = Random::new(1);
    let mut messages = vec![json!({"role": "user", "content": "Go."})];
    let settings = Settings::recommended();
    let store = Faulty::new(Memory::new());
    let long_lived = process(&settings, &store);
    for id in 0..rounds {
        messages.extend(round(id, &mut random));
        reduce(&runtime, &long_lived, &messages);
    }
    let bytes: usize = messages
        .iter()
        .map(|message| message.to_string().len())
        .sum();
    let (_, expected) = reduce(&runtime, &long_lived, &messages);
    let mut longer = messages.clone();
    longer.extend(round(rounds, &mut random));

    let (mut counting, mut meeting, mut next) = (Vec::new(), Vec::new(), Vec::new());
    let (mut reads, mut new_reads) = (0, 0);
    for _ in 0..times {
        let fresh = process(&settings, &store);
        let mut copy = messages.clone();
        counting.push(time(|| fresh.count_tokens(&Messages::new(OpenAiChat, &mut copy), &[])).0);
        let fresh = process(&settings, &store);
        let before = store.reads();
        let (took, sent) = reduce(&runtime, &fresh, &messages);
        assert_eq!(sent, expected);
        reads = store.reads() - before;
        meeting.push(took);
        let before = store.reads();
        next.push(reduce(&runtime, &fresh, &messages).0);
        new_reads = store.reads() - before;
    }
    // With a new round, once: it is written down.
    let (with_new, _) = reduce(&runtime, &long_lived, &longer);
    let [counting, meeting, next] =
        [counting, meeting, next].map(|times| fastest(&times).as_secs_f64() * 1e3);
    let with_new = with_new.as_secs_f64() * 1e3;
    println!("{rounds} rounds, {} kB, in ms", bytes / 1_000);
    println!("counting all texts once            {counting:9.2}");
    println!(
        "a new process, first call          {meeting:9.2}  {:5.2} of counting, {reads} reads",
        meeting / counting
    );
    println!(
        "the same history again             {next:9.2}  {:5.2} of counting, {new_reads} reads",
        next / counting
    );
    println!(
        "with a new round of 12 kB          {with_new:9.2}  {:5.2} of counting",
        with_new / counting
    );
    let all = json!({"bytes": bytes, "counting_ms": counting, "meeting_ms": meeting, "next_ms": next, "new_round_ms": with_new, "reads": reads, "next_reads": new_reads});
    println!("{all}");
}
