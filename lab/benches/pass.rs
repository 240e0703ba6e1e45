//! The cost of a clear pass, compared with counting everything again: ratios within one run.
//!
//! `cargo bench -p offcut-lab --bench pass`. If `OFFCUT_TRACES` names a folder of transcripts, it replays those
//! too. After `--`, `passes`, `allocations` or `traces` selects one part. The last line is JSON.
// A bench that can't be set up has failed, and benches print.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::alloc::System;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use offcut::backend::Memory;
use offcut::format::{Conversation, LoopFormat, Messages, OpenAiChat, PartRef, Piece};
use offcut::report::Outcome;
use offcut::tokens::CountTokens;
use offcut::{Report, Settings, TokenCounter, ToolCall, ToolPolicy, ToolReduction};
use offcut_cli::trials::Random;
use offcut_lab::texts::{code, json as json_text};
use offcut_lab::{fastest, is_bench, is_wanted, time};
use serde_json::{Map, Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Sizes in bytes of an old result and of a new one.
const OLD: usize = 4_000;
const NEW: usize = 2_000;
/// Number of rounds in a history of 640 kB.
const ISSUE: usize = 160;

/// Makes the messages that call a tool and answer with `result`.
fn round(id: usize, result: String) -> [Value; 2] {
    let call = ToolCall::new(
        format!("call_{id}"),
        "grep",
        format!(r#"{{"pattern":"fn {id}","path":"src"}}"#),
    );
    let function = json!({"name": call.name, "arguments": call.arguments});
    let calls = json!([{"id": call.id, "type": "function", "function": function}]);
    [
        json!({"role": "assistant", "content": null, "tool_calls": calls}),
        OpenAiChat.tool_message(&call, vec![result.into()], false),
    ]
}

/// Makes a history of rounds with results of 4 kB, half of them source code and half JSON.
fn history(rounds: usize) -> Vec<Value> {
    let mut random = Random::new(rounds as u64);
    let mut messages = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "Go."}),
    ];
    for id in 0..rounds {
        let make = if id % 2 == 0 { code } else { json_text };
        let mut text = make(&mut random, OLD);
        text.truncate(OLD);
        messages.extend(round(id, text));
    }
    messages
}

fn texts(messages: &mut [Value]) -> Vec<String> {
    let mut texts = Vec::new();
    let conversation = Messages::new(OpenAiChat, messages);
    for message in 0..conversation.len() {
        conversation.visit(message, &mut |piece| match piece {
            Piece::Content(PartRef::Text(text)) => texts.push(text.to_owned()),
            Piece::Call(call) => {
                texts.push(call.name.to_owned());
                if let offcut::format::JsonRef::Spelled(text) = call.arguments {
                    texts.push(text.to_owned());
                }
            }
            _ => {}
        });
    }
    texts
}

fn clear(runtime: &Runtime, reduction: &ToolReduction, messages: &mut [Value]) -> Report {
    runtime
        .block_on(reduction.clear(OpenAiChat, messages))
        .unwrap()
}

/// The treatment of the history in each pass.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Case {
    /// The history is under the threshold.
    NotTriggered,
    /// The history is over the threshold, but nothing may be cleared.
    Triggered,
    /// The loop passes in the originals each time, and all but the newest are replaced again.
    Repeated,
}

impl Case {
    fn reduction(self, tokens: u64) -> ToolReduction {
        let builder = ToolReduction::builder().backend(Memory::new());
        let builder = match self {
            // The history has fewer tokens than this but more bytes, so it must be counted.
            Self::NotTriggered => builder.max_tokens_for_clear(tokens * 2),
            Self::Triggered => builder
                .max_tokens_for_clear(1)
                .tool("grep", ToolPolicy::new().skip_clear(true)),
            Self::Repeated => builder.max_tokens_for_clear(1),
        };
        builder.build().unwrap()
    }
}

/// The cost of a pass over a history in which only the last round is new.
#[derive(Clone, Copy, Debug)]
struct Cost {
    rounds: usize,
    recount: Duration,
    /// The pass without the time for counting the new texts.
    old: Duration,
}

impl Cost {
    fn ratio(self) -> f64 {
        self.recount.as_secs_f64() / self.old.as_secs_f64()
    }

    fn ns_per_old_message(self) -> f64 {
        self.old.as_nanos() as f64 / self.rounds as f64
    }
}

/// Measures counting `texts`, each on its own to leave out other work on the machine. Extrapolates
/// from the first 1 000.
fn recount(counter: &dyn CountTokens, texts: &[String]) -> Duration {
    let part = &texts[..texts.len().min(1_000)];
    let times = if is_bench() { 5 } else { 1 };
    let count = |text: &String| {
        let times: Vec<_> = (0..times)
            .map(|_| time(|| counter.count(black_box(text))).0)
            .collect();
        fastest(&times)
    };
    let counted: Duration = part.iter().map(count).sum();
    counted.mul_f64(texts.len() as f64 / part.len() as f64)
}

fn measure(runtime: &Runtime, case: Case, rounds: usize) -> Cost {
    let counter = TokenCounter::O200kBase.build().unwrap();
    let times = match (is_bench(), rounds) {
        (false, _) => 1,
        (true, ..1_000) => 60,
        (true, ..10_000) => 30,
        (true, _) => 15,
    };
    let mut messages = history(rounds);
    let all = texts(&mut messages);
    let tokens = all.iter().map(|text| counter.count(text)).sum();

    let reduction = case.reduction(tokens);
    let mut random = Random::new(7);
    clear(runtime, &reduction, &mut messages.clone());
    let (mut passes, mut news) = (Vec::new(), Vec::new());
    let mut new = |turn| {
        let mut text = code(&mut random, NEW);
        text.truncate(NEW);
        round(rounds + turn, text)
    };
    for turn in 0..times {
        let mut sent = messages.clone();
        sent.extend(new(turn));
        let (pass, report) = time(|| clear(runtime, &reduction, &mut sent));
        assert_eq!(report.is_change(), case == Case::Repeated);
        assert_eq!(report.decisions.is_empty(), case == Case::NotTriggered);
        passes.push(pass);
        // Other texts of the same kind, because the processor has seen those of the pass.
        let texts = texts(&mut new(turn));
        news.push(
            time(|| {
                texts
                    .iter()
                    .map(|text| counter.count(black_box(text)))
                    .sum::<u64>()
            })
            .0,
        );
    }
    Cost {
        rounds,
        recount: recount(&*counter, &all),
        old: fastest(&passes).saturating_sub(fastest(&news)),
    }
}

/// Counts the allocations of a pass that changes nothing and finds nothing new.
fn allocations(runtime: &Runtime, rounds: usize) -> usize {
    let mut messages = history(rounds);
    // More than the tokens and less than the bytes.
    let bytes: usize = texts(&mut messages).iter().map(String::len).sum();
    let reduction = Case::NotTriggered.reduction(bytes as u64 / 4);
    let counts = (0..3).map(|_| {
        let region = Region::new(ALLOCATOR);
        let report = clear(runtime, &reduction, &mut messages);
        let stats = region.change();
        assert!(report.decisions.is_empty());
        stats.allocations + stats.reallocations
    });
    counts.last().unwrap()
}

fn transcripts() -> Vec<Vec<Value>> {
    let Some(folder) = std::env::var_os("OFFCUT_TRACES") else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    if !is_bench() {
        files.truncate(3);
    }
    let read = |file| serde_json::from_slice::<Value>(&std::fs::read(file).unwrap()).unwrap();
    files
        .into_iter()
        .map(|file| read(file)["messages"].as_array().unwrap().clone())
        .collect()
}

/// All passes over all transcripts.
#[derive(Debug, Default)]
struct Replay {
    passes: Vec<Duration>,
    /// Counting each text once: on arrival, and again as the text that replaced it in a pass.
    once: Duration,
    /// Counting everything sent, at every call.
    every_time: Duration,
}

impl Replay {
    fn total(&self) -> Duration {
        self.passes.iter().sum()
    }

    fn of_once(&self) -> f64 {
        self.total().as_secs_f64() / self.once.as_secs_f64()
    }
}

/// The treatment of results on arrival.
#[derive(Clone, Copy, PartialEq)]
enum Results {
    Whole,
    Truncated,
}

fn replay(
    runtime: &Runtime,
    transcripts: &[Vec<Value>],
    reduction: &ToolReduction,
    results: Results,
) -> Replay {
    let counter = TokenCounter::O200kBase.build().unwrap();
    let mut all = Replay::default();
    let count = |messages: &mut [Value]| {
        let texts = texts(messages);
        time(|| {
            texts
                .iter()
                .map(|text| counter.count(black_box(text)))
                .sum::<u64>()
        })
        .0
    };
    for (number, transcript) in transcripts.iter().enumerate() {
        let reduction = reduction.session(&number.to_string());
        let (mut messages, mut so_far) = (Vec::new(), Duration::ZERO);
        for message in transcript {
            if message["role"] == "assistant" {
                let (pass, report) = time(|| clear(runtime, &reduction, &mut messages));
                all.passes.push(pass);
                for decision in report
                    .decisions
                    .iter()
                    .filter(|decision| decision.outcome == Outcome::Cleared)
                {
                    all.once += count(std::slice::from_mut(
                        &mut messages[decision.message.unwrap()],
                    ));
                }
                all.every_time += so_far;
            }
            let mut message = message.clone();
            let once = count(std::slice::from_mut(&mut message));
            so_far += once;
            all.once += once;
            if results == Results::Truncated && message["role"] == "tool" {
                let call = ToolCall::new(message["tool_call_id"].as_str().unwrap(), "", "");
                let shown = runtime
                    .block_on(reduction.truncate(&call, message["content"].as_str().unwrap()))
                    .unwrap();
                message["content"] = shown.text().into();
            }
            messages.push(message);
        }
    }
    all.passes.sort_unstable();
    all
}

fn report_replay(name: &str, replay: &Replay) -> Value {
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let at = |share: usize| ms(replay.passes[(replay.passes.len() - 1) * share / 100]);
    println!(
        "{name}: {} passes, median {:.3} ms, p95 {:.3} ms, together {:.0} ms; counting each text once {:.0} ms ({:.3} of it), all of it at every call {:.0} ms",
        replay.passes.len(),
        at(50),
        at(95),
        ms(replay.total()),
        ms(replay.once),
        replay.of_once(),
        ms(replay.every_time),
    );
    json!({"passes_ms": ms(replay.total()).round(), "once_ms": ms(replay.once).round(), "of_once": round_to(replay.of_once(), 3)})
}

fn round_to(number: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (number * factor).round() / factor
}

fn measure_passes(runtime: &Runtime, sizes: &[usize], lines: &mut Map<String, Value>) {
    for (case, name) in [
        (Case::NotTriggered, ""),
        (Case::Triggered, "_triggered"),
        (Case::Repeated, "_repeated"),
    ] {
        let mut per_message = Map::new();
        println!("{case:?}: a new message of {NEW} bytes after N rounds of {OLD} bytes each");
        for rounds in sizes {
            let cost = measure(runtime, case, *rounds);
            println!(
                "{rounds:>6} rounds: recount {:>9.1} µs, old part of the pass {:>8.1} µs, ratio {:>5.0}, {:>5.0} ns for each old message",
                cost.recount.as_secs_f64() * 1e6,
                cost.old.as_secs_f64() * 1e6,
                cost.ratio(),
                cost.ns_per_old_message(),
            );
            per_message.insert(rounds.to_string(), cost.ns_per_old_message().round().into());
            if *rounds == ISSUE {
                lines.insert(format!("recount_ratio{name}"), cost.ratio().round().into());
            }
        }
        lines.insert(format!("ns_per_old_message{name}"), per_message.into());
    }
}

fn measure_allocations(runtime: &Runtime, sizes: &[usize], lines: &mut Map<String, Value>) {
    let counts: Vec<usize> = sizes
        .iter()
        .map(|rounds| allocations(runtime, *rounds))
        .collect();
    println!("allocations of a pass that is not triggered, over {sizes:?} rounds: {counts:?}");
    lines.insert(
        "allocations_untriggered".into(),
        counts.iter().max().copied().into(),
    );
}

fn measure_transcripts(runtime: &Runtime, lines: &mut Map<String, Value>) {
    let transcripts = transcripts();
    if transcripts.is_empty() {
        println!("OFFCUT_TRACES names no transcripts: none are replayed");
        return;
    }
    let counter = TokenCounter::O200kBase.build().unwrap();
    // A closure has no known properties, so everything is counted.
    let everything =
        ToolReduction::builder().count_tokens_with(move |text: &str| counter.count(text));
    let cases = [
        (
            "everything counted, nothing cleared",
            Results::Whole,
            everything.max_tokens_for_clear(u64::MAX),
        ),
        (
            "recommended",
            Results::Truncated,
            ToolReduction::builder().settings(Settings::recommended(), offcut::backend::open),
        ),
        (
            "recommended, results whole",
            Results::Whole,
            ToolReduction::builder().settings(Settings::recommended(), offcut::backend::open),
        ),
        (
            "default, results whole",
            Results::Whole,
            ToolReduction::builder(),
        ),
    ];
    let replays = cases.map(|(name, results, builder)| {
        let reduction = builder.backend(Memory::new()).build().unwrap();
        (
            name.to_owned(),
            report_replay(name, &replay(runtime, &transcripts, &reduction, results)),
        )
    });
    lines.insert("traces".into(), Map::from_iter(replays).into());
}

fn main() {
    TokenCounter::O200kBase.build().unwrap().count("a"); // reads the tables
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let sizes: &[usize] = if is_bench() {
        &[10, 100, ISSUE, 1_000, 10_000]
    } else {
        &[10, 100]
    };
    let mut lines = Map::new();
    if is_wanted("passes") {
        measure_passes(&runtime, sizes, &mut lines);
    }
    if is_wanted("allocations") {
        measure_allocations(&runtime, sizes, &mut lines);
    }
    if is_wanted("traces") {
        measure_transcripts(&runtime, &mut lines);
    }
    println!("{}", Value::Object(lines));
}
