//! Finding the values in a request's body: `JsonText`, next to the fastest crates for this.
//!
//! The body is 1 MB of chat-completions JSON: rounds of a call and a result of 4 kB of source code,
//! with its line feeds and quotes escaped. Each crate finds the fields of each message. They differ
//! in their other work: some check all values, some decode strings, some skip what is not asked for.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench prints, and ends where its input is wrong"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use offcut::format::{JsonText, RequestBody};
use offcut_lab::texts::{Numbers, code};
use offcut_lab::{fastest, is_bench, time};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sonic_rs::JsonValueTrait;

fn body(bytes: usize) -> String {
    let mut numbers = Numbers::new(7);
    let mut messages = vec![json!({"role": "user", "content": "find what is slow, and mend it"})];
    let mut length = 0;
    while length < bytes {
        let (id, result) = (
            format!("call_{}", messages.len()),
            code(&mut numbers, 4_000),
        );
        length += result.len() + 300;
        let function = json!({"name": "read_file", "arguments": json!({"path": "src/session.rs", "offset": length}).to_string()});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    }
    json!({"model": "some-model", "temperature": 0.5, "messages": messages}).to_string()
}

#[derive(Deserialize)]
struct Raw<'b> {
    #[serde(borrow)]
    messages: Vec<BTreeMap<Cow<'b, str>, &'b RawValue>>,
}

fn serde_json_raw(text: &str) -> usize {
    let raw: Raw<'_> = serde_json::from_str(text).expect("a body");
    raw.messages
        .iter()
        .flat_map(BTreeMap::values)
        .map(|value| value.get().len())
        .sum()
}

fn sonic_lazy(text: &str) -> usize {
    let messages = sonic_rs::get_from_str(text, &["messages"]).expect("messages");
    let mut length = 0;
    for message in sonic_rs::to_array_iter(messages.as_raw_str()) {
        let message = message.expect("a message");
        for field in sonic_rs::to_object_iter(message.as_raw_str()) {
            length += field.expect("a field").1.as_raw_str().len();
        }
    }
    length
}

fn sonic_tree(text: &str) -> usize {
    let value: sonic_rs::Value = sonic_rs::from_str(text).expect("a body");
    usize::from(value.is_object())
}

fn simd_tape(mut text: Vec<u8>) -> usize {
    simd_json::to_tape(&mut text).expect("a body").0.len()
}

fn jiter_skip(text: &str) -> usize {
    let mut jiter = jiter::Jiter::new(text.as_bytes());
    let mut fields = 0;
    let mut key = jiter.next_object().expect("a body").map(str::to_owned);
    while let Some(name) = key {
        if name == "messages" {
            let mut item = jiter.next_array().expect("messages");
            while item.is_some() {
                let mut field = jiter.next_object().expect("a message").is_some();
                while field {
                    jiter.next_skip().expect("a value");
                    fields += 1;
                    field = jiter.next_key().expect("a key").is_some();
                }
                item = jiter.array_step().expect("an item");
            }
        } else {
            jiter.next_skip().expect("a value");
        }
        key = jiter.next_key().expect("a key").map(str::to_owned);
    }
    fields
}

/// The shortest of several runs, without the time to make the input.
fn measure<I, T>(runs: usize, input: impl Fn() -> I, run: impl Fn(I) -> T) -> Duration {
    let times: Vec<Duration> = (0..runs)
        .map(|_| {
            let input = input();
            let (took, result) = time(|| run(input));
            drop(std::hint::black_box(result));
            took
        })
        .collect();
    fastest(&times)
}

fn main() {
    let (bytes, runs) = if is_bench() {
        (1_000_000, 200)
    } else {
        (20_000, 1)
    };
    let text = body(bytes);
    let own = || text.clone();
    let rows = [
        (
            "JsonText::parse",
            measure(runs, own, |text| JsonText::parse(text).expect("JSON")),
        ),
        (
            "RequestBody::parse, which splits and copies",
            measure(runs, own, |text| RequestBody::parse(text).expect("a body")),
        ),
        ("sonic-rs, lazy", measure(runs, || &*text, sonic_lazy)),
        ("sonic-rs, tree", measure(runs, || &*text, sonic_tree)),
        (
            "simd-json, tape",
            measure(runs, || text.clone().into_bytes(), simd_tape),
        ),
        ("jiter, skip", measure(runs, || &*text, jiter_skip)),
        (
            "serde_json, RawValue",
            measure(runs, || &*text, serde_json_raw),
        ),
    ];
    let ours = rows[0].1;
    let mut line = serde_json::Map::new();
    println!(
        "{:<40} {:>8} {:>8}",
        format!("{} bytes", text.len()),
        "GB/s",
        "÷ ours"
    );
    for (name, took) in rows {
        let speed = text.len() as f64 / took.as_nanos().max(1) as f64;
        let ratio = took.as_secs_f64() / ours.as_secs_f64().max(f64::MIN_POSITIVE);
        println!("{name:<40} {speed:>8.2} {ratio:>8.2}");
        line.insert(
            name.into(),
            json!({"gb_per_s": speed, "time_to_ours": ratio}),
        );
    }
    println!("{}", Value::from(line));
}
