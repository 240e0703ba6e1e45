//! Costs of the two calls of a loop from Python and from Node, beside Rust's and those of a process for each call.
//! `scripts/bindings costs` builds what it needs and runs it.

#![allow(
    clippy::unwrap_used,
    reason = "a bench stops where something is missing"
)]

use std::hint::black_box;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use offcut::format::{Messages, OpenAiChat};
use offcut::{Settings, ToolCall, ToolReduction, Turn, backend};
use serde_json::{Value, json};

/// Number of measurements, of which the fastest counts: other programs only slow one down.
const RUNS: usize = 200;

/// A conversation of about 600 kB.
fn conversation() -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "Where is the leak?"})];
    for round in 0..60 {
        let id = format!("call_{round}");
        let lines = (0..230)
            .map(|line| format!("src/pool_{round}.rs:{line}: let connection = pool.get();\n"));
        let function = json!({"name": "grep", "arguments": "{\"pattern\": \"pool\"}"});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]}));
        messages.push(
            json!({"role": "tool", "tool_call_id": id, "content": lines.collect::<String>()}),
        );
    }
    messages
}

fn fastest(mut work: impl FnMut(usize)) -> f64 {
    let mut time = |nth| {
        let start = Instant::now();
        work(nth);
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..RUNS).map(&mut time).fold(f64::INFINITY, f64::min)
}

/// Milliseconds that a call takes in Rust: of truncation, and of an untriggered pass; and the conversion of its messages
/// from JSON and to it.
fn rust(settings: &str, messages: &mut [Value], text: &str) -> [f64; 4] {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = Settings::from_json(settings).unwrap();
    let builder = ToolReduction::builder().settings(settings, backend::open);
    let reduction = builder.build().unwrap();
    let truncate = fastest(|nth| {
        let call = ToolCall::new(format!("call_{nth}"), "grep", "{}");
        let shown = runtime.block_on(reduction.truncate(&call, format!("{nth}\n{text}")));
        assert!(shown.unwrap().report.is_change());
    });
    let pass = fastest(|_| {
        let mut conversation = Messages::new(OpenAiChat, messages);
        let mut turn = Turn::new(&mut conversation);
        let report = runtime.block_on(reduction.clear_turn(&mut turn));
        assert!(!report.unwrap().is_change());
    });
    let json = json!(messages).to_string();
    let from_json =
        fastest(|_| drop(serde_json::from_str::<Vec<Value>>(black_box(&json)).unwrap()));
    let to_json = fastest(|_| drop(black_box(serde_json::to_string(messages).unwrap())));
    [truncate, pass, from_json, to_json]
}

/// A script's figures: truncation, an untriggered pass, and the conversion of its messages to JSON and back.
fn script(command: &mut Command) -> [f64; 4] {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<f64> = serde_json::from_str(&text).unwrap();
    figures.try_into().unwrap()
}

fn program(path: &str, arguments: &[&str], input: &str) -> f64 {
    let runs = (0..10).map(|_| {
        let start = Instant::now();
        let mut command = Command::new(path);
        let command = command.args(arguments).stdin(Stdio::piped());
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
        start.elapsed().as_secs_f64() * 1e3
    });
    runs.fold(f64::INFINITY, f64::min)
}

fn main() {
    let read = |name: &str| std::env::var(name).ok();
    let (Some(python), Some(folder), Some(path)) = (
        read("OFFCUT_PYTHON"),
        read("OFFCUT_SCRIPTS"),
        read("OFFCUT"),
    ) else {
        eprintln!("SKIPPED: scripts/bindings costs runs it");
        return;
    };
    let settings = json!({"preset": "recommended", "backend": "memory:costs", "max_tokens_for_clear": 400_000});
    let (mut messages, text) = (conversation(), "a line of the log\n".repeat(1_700));
    let given =
        json!({"settings": settings, "messages": messages, "text": text, "runs": RUNS}).to_string();
    let file = std::env::temp_dir().join(format!("offcut-costs-{}.json", std::process::id()));
    std::fs::write(&file, &given).unwrap();
    let body = json!({"messages": messages}).to_string();
    println!(
        "truncate: {} bytes; before_model: {} bytes, nothing to do",
        text.len(),
        body.len()
    );

    let [truncate, pass, from_json, to_json] = rust(&settings.to_string(), &mut messages, &text);
    println!(
        "Rust      truncate {truncate:.3} ms, before_model {pass:.2} ms; messages {from_json:.2} ms from JSON, {to_json:.2} ms to it"
    );
    for (name, command) in [("Python", &python), ("Node", &"node".to_owned())] {
        let ending = if name == "Node" { "mjs" } else { "py" };
        let mut command = Command::new(command);
        let [own, other, dump, load] =
            script(command.arg(format!("{folder}/costs.{ending}")).arg(&file));
        let (more, allowed) = (own - truncate, 1.3 * pass + dump + from_json);
        let and_back = allowed + to_json + load;
        println!(
            "{name:<9} truncate {own:.3} ms, {more:+.3} ms (at most 0.2); before_model {other:.2} ms; messages {dump:.2} ms to \
             JSON, {load:.2} ms from it (1.3 times Rust and the conversion to values: {allowed:.2} ms; and back: {and_back:.2} ms)"
        );
    }
    std::fs::remove_file(&file).unwrap();
    let store = std::env::temp_dir().join(format!("offcut-costs-{}", std::process::id()));
    let store = store.to_str().unwrap();
    let config = format!("{store}.toml");
    std::fs::write(
        &config,
        "preset = \"recommended\"\nmax_tokens_for_clear = 400_000\n",
    )
    .unwrap();
    let options = ["--config", &config, "--backend", store];
    let truncate = program(
        &path,
        &[&["truncate", "--tool", "grep"][..], &options].concat(),
        &text,
    );
    let pass = program(&path, &[&["clear"][..], &options].concat(), &body);
    println!("a process truncate {truncate:.1} ms, clear {pass:.1} ms");
    _ = std::fs::remove_dir_all(store);
    _ = std::fs::remove_file(config);
}
