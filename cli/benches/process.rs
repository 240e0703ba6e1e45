//! Measures the time of a whole process for one result or one conversation, from start to answer,
//! compared with a process that does nothing.
//!
//! `cargo bench -p offcut-cli --bench process`. The last line is JSON.
// A bench that can't be set up should panic, and it prints its results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const OFFCUT: &str = env!("CARGO_BIN_EXE_offcut");

/// A measurement: its name, the arguments of `offcut`, and stdin.
struct Case {
    name: String,
    arguments: Vec<String>,
    stdin: String,
}

impl Case {
    fn truncate(kilobytes: usize) -> Self {
        Self {
            name: format!("truncate, {kilobytes} kB"),
            arguments: ["truncate", "--tool", "grep", "--call-id", "call_1"]
                .map(String::from)
                .to_vec(),
            stdin: code(kilobytes * 1_000),
        }
    }

    /// A conversation of 1 MB: below the threshold by bytes, below it by tokens, or above it.
    fn clear(name: &str, threshold: u64, folder: &Path) -> Self {
        let settings = folder.join(format!("{threshold}.toml"));
        let toml = format!("preset = \"recommended\"\nmax_tokens_for_clear = {threshold}\n");
        std::fs::write(&settings, toml).unwrap();
        Self {
            name: format!("clear, 1 MB, {name}"),
            arguments: vec![
                "clear".into(),
                "--config".into(),
                settings.display().to_string(),
            ],
            stdin: conversation(1_000_000).to_string(),
        }
    }
}

/// Generates `bytes` bytes that resemble a search over a source tree.
fn code(bytes: usize) -> String {
    let line = |n: usize| {
        format!(
            "src/module_{}/part_{n}.rs:{}:    pub fn read_page_{n}(&self, from: usize) -> Page {{\n",
            n % 17,
            n * 3
        )
    };
    let mut text: String = (1..).map(line).take(1 + bytes / 60).collect();
    text.truncate(bytes);
    text
}

fn conversation(bytes: usize) -> Value {
    let rounds = bytes / 5_000;
    let round = |n: usize| {
        let id = format!("call_{n}");
        let function = json!({"name": "grep", "arguments": "{\"pattern\":\"page\"}"});
        [
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]}),
            json!({"role": "tool", "tool_call_id": id, "content": format!("{n}\n{}", code(4_800))}),
        ]
    };
    let mut messages = vec![json!({"role": "user", "content": "Where are pages read?"})];
    messages.extend((0..rounds).flat_map(round));
    messages.into()
}

/// Runs a command to its end and returns the time since its start.
fn run(program: &str, arguments: &[String], stdin: &Path, stdout: &Path) -> Duration {
    let begin = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .stdin(File::open(stdin).unwrap())
        .stdout(File::create(stdout).unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let taken = begin.elapsed();
    assert!(status.success(), "{program} {arguments:?}: {status}");
    taken
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let times = if is_bench { 21 } else { 1 };
    let home = tempfile::tempdir().unwrap();
    let cases = [2, 30, 100, 300].map(Case::truncate).into_iter().chain([
        Case::clear(
            "proven under the threshold by its bytes",
            2_000_000,
            home.path(),
        ),
        Case::clear("counted, under the threshold", 500_000, home.path()),
        Case::clear("counted and cleared", 60_000, home.path()),
    ]);
    let (stdin, stdout) = (home.path().join("stdin"), home.path().join("stdout"));
    let mut rows = Vec::new();
    println!("| one process | ms, median | ÷ `true` |\n|---|---|---|");
    for mut case in cases {
        std::fs::write(&stdin, &case.stdin).unwrap();
        // Alternating, so that both run under the same conditions.
        let (mut ours, mut nothing) = (Vec::new(), Vec::new());
        let fixed = case.arguments.len();
        for n in 0..times {
            let store = home.path().join(format!("store-{}-{n}", rows.len()));
            case.arguments.truncate(fixed);
            case.arguments
                .extend(["--backend".to_owned(), store.display().to_string()]);
            ours.push(run(OFFCUT, &case.arguments, &stdin, &stdout));
            nothing.push(run("true", &[], &stdin, &stdout));
        }
        let (ours, nothing) = (median(ours), median(nothing));
        println!("| {} | {ours:.1} | {:.1} |", case.name, ours / nothing);
        rows.push(json!({"name": case.name, "ms": ours, "ratio": ours / nothing}));
    }
    println!("{}", json!({"bench": "process", "rows": rows}));
}
