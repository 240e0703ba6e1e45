//! Each example as the process that a user starts, against a provider on loopback.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod provider;

use std::fmt::Write;
use std::path::Path;
use std::process::Output;

use offcut::format::WireFormat;
use offcut::hint::{Hint, Kind};
use offcut_testkit::ShownResult;
use provider::{KEY, MODEL, Provider, Step};
use serde_json::json;

const QUESTION: &str = "What does step_1234 return?";
const ANSWER: &str = "It returns 1234 * 7.";
/// A line of the long result that no preview shows, since it looks like its neighbours.
const DEEP: &str = "src/steps.rs:1234:fn step_1234() -> u64 { 1234 * 7 }";

/// Two files: one with thousands of matches, one with a single one.
fn directory() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("src")).unwrap();
    let mut steps = String::new();
    for step in 1..=3_000 {
        writeln!(steps, "fn step_{step}() -> u64 {{ {step} * 7 }}").unwrap();
    }
    std::fs::write(home.path().join("src/steps.rs"), steps).unwrap();
    std::fs::write(home.path().join("notes.md"), "nothing\na needle\n").unwrap();
    home
}

/// Runs the example `name` to its end. `cargo test` builds examples first.
async fn run(name: &str, url: &str, home: &Path) -> Output {
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    program.push("examples");
    program.push(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let mut command = tokio::process::Command::new(&program);
    command.args([MODEL, ".", QUESTION]).current_dir(home);
    command.env("OPENAI_BASE_URL", format!("{url}/v1"));
    command.env("ANTHROPIC_BASE_URL", url);
    command.env("GOOGLE_GEMINI_BASE_URL", url);
    for variable in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        command.env(variable, KEY);
    }
    let output = command.kill_on_drop(true).output().await;
    output.unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo test -p offcut-examples --features services` builds it",
            program.display()
        )
    })
}

/// Searches twice at once; then reads a part that the long result left out, next to a failing
/// search; then answers.
fn script(rounds: &[Vec<ShownResult>]) -> Result<Step, String> {
    let said = || "Let me see.".to_owned();
    match rounds {
        [] => {
            let patterns = [
                "^fn ", "needle", "fn s", "fn st", "fn ste", "fn step", "step",
            ];
            // Long enough in all that clearing them is worth a pass.
            let calls = patterns.map(|pattern| ("grep", json!({ "pattern": pattern })));
            Ok(Step::Calls(said(), calls.to_vec()))
        }
        [first] => {
            let location = location_of_the_long_one(first)?;
            let page = json!({"path": location, "pattern": "step_1234\\b"});
            let calls = vec![("read_file", page), ("grep", json!({"pattern": "("}))];
            // Enough prose to make the next pass clear old results.
            Ok(Step::Calls(
                "Considering every step. ".repeat(15_000),
                calls,
            ))
        }
        [first, second] => {
            is_cleared(first)?;
            let [page, failed] = &second[..] else {
                return Err(format!("{} results for two calls", second.len()));
            };
            if page.is_error || !page.text.contains(DEEP) {
                return Err(format!("the page lacks the line: {}", page.text));
            }
            if !failed.text.contains("unclosed group") {
                return Err(format!("no word of the wrong pattern: {}", failed.text));
            }
            Ok(Step::Answer(ANSWER))
        }
        _ => Err(format!("{} rounds", rounds.len())),
    }
}

fn location_of_the_long_one(results: &[ShownResult]) -> Result<String, String> {
    let [long, short, ..] = results else {
        return Err(format!("{} results for seven calls", results.len()));
    };
    if short.text.trim() != "notes.md:2:a needle" {
        return Err(format!("the short result is not whole: {}", short.text));
    }
    let hint = Hint::parse(&long.text).ok_or("the long result has no hint")?;
    if hint.kind != Kind::Truncated || long.text.len() > 8_000 || long.text.contains(DEEP) {
        return Err(format!("not truncated: {} bytes", long.text.len()));
    }
    let location = hint.location.ok_or("nothing is stored")?;
    Ok(location.to_string())
}

fn is_cleared(results: &[ShownResult]) -> Result<(), String> {
    let hint = results.first().and_then(|long| Hint::parse(&long.text));
    let hint = hint.ok_or("the long result has no hint any more")?;
    let is_cleared = matches!(hint.kind, Kind::Cleared | Kind::Link) && hint.location.is_some();
    is_cleared
        .then_some(())
        .ok_or_else(|| format!("not cleared: {:?}", hint.kind))
}

async fn answers(example: &str, format: WireFormat) {
    let (provider, url) = Provider::start(format, script).await;
    let home = directory();
    let output = run(example, &url, home.path()).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {error}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), ANSWER);
    let requests = provider.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 3, "{requests:?}");
    assert!(requests[1] < 60_000, "{requests:?}");
    let stored = std::fs::read_dir(home.path().join(".offcut/trunc")).unwrap();
    assert!(stored.count() >= 1);
}

#[tokio::test]
async fn chat_completions() {
    answers("chat_completions", WireFormat::OpenAiChat).await;
}

#[tokio::test]
async fn responses() {
    answers("responses", WireFormat::Responses).await;
}

#[tokio::test]
async fn anthropic() {
    answers("anthropic", WireFormat::Anthropic).await;
}

#[tokio::test]
async fn gemini() {
    answers("gemini", WireFormat::Gemini).await;
}

#[tokio::test]
async fn a_refusal_is_shown() {
    let refuse = |_: &[Vec<ShownResult>]| Err("no credit left".to_owned());
    let (_provider, url) = Provider::start(WireFormat::Anthropic, refuse).await;
    let home = directory();
    let output = run("anthropic", &url, home.path()).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        error.contains("400 Bad Request") && error.contains("no credit left"),
        "{error}"
    );
}

/// Lines without the mark don't mention Offcut.
#[test]
fn the_example_adds_about_ten_lines() {
    let examples = [
        include_str!("../chat_completions.rs"),
        include_str!("../responses.rs"),
        include_str!("../anthropic.rs"),
        include_str!("../gemini.rs"),
    ];
    for code in examples {
        let lines = code.lines().filter(|line| !line.starts_with("//!"));
        let (added, own): (Vec<_>, Vec<_>) = lines.partition(|line| line.ends_with("// offcut"));
        assert!((6..=7).contains(&added.len()), "{added:#?}");
        let unmarked = own.iter().filter(|line| line.contains("reduction"));
        assert_eq!(unmarked.count(), 0);
    }
}
