//! Usage that a provider has recorded in a log, beside what `offcut replay` counts.
// Helpers are part of the tests.

use std::path::{Path, PathBuf};

use crate::support::{succeed, text};
use serde_json::{Value, json};

fn session(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/usage");
    folder.join(name)
}

#[test]
fn usage_that_agents_wrote_down_is_compared_with_ours() {
    let (claude_code, codex) = (session("claude-code.jsonl"), session("codex.jsonl"));
    let args = [
        "replay",
        "--json",
        "--policy",
        "eino",
        text(&claude_code),
        text(&codex),
    ];
    let out: Value = serde_json::from_str(&succeed(&args, "")).unwrap();
    let usage = out["usage"].as_array().unwrap();
    // Claude Code has two lines for a message with a call, each with the usage of both. Its cached
    // tokens stand beside the others, and those of Codex among them.
    let expected = [
        (
            &claude_code,
            10_028 + 12_683 + 12_977,
            4 * 4 + 12_408 + 2_666 + 305 + 305,
        ),
        (&codex, 9_869 + 10_175 + 10_481, 9_870 + 306 + 306 + 306),
    ];
    assert_eq!(usage.len(), expected.len());
    for (usage, (path, cached, fresh)) in usage.iter().zip(expected) {
        assert_eq!(usage["name"], text(path));
        let recorded = json!({"calls": 4, "cached": cached, "fresh": fresh});
        assert_eq!(usage["recorded"], recorded);
        let counted = &usage["counted"];
        assert_eq!(counted["calls"], 4);
        let of = |field: &str| counted[field].as_u64().unwrap();
        // The log lacks instructions and tools.
        assert!(of("cached") < cached && of("fresh") < fresh, "{usage}");
        assert!((200..1_200).contains(&of("fresh")), "{usage}");
    }
}

#[test]
fn the_comparison_is_one_line_and_only_there_with_usage() {
    let recorded = succeed(
        &["replay", "--policy", "eino", text(&session("codex.jsonl"))],
        "",
    );
    let joined = recorded.replace('\n', " ");
    assert!(
        joined.contains("Providers recorded 41313 tokens of input in 4 calls, 73.9 % of it from the cache, in 1 log; none has "),
        "{recorded}"
    );
    let pi = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions/atif.json");
    let without = succeed(&["replay", "--policy", "eino", text(&pi)], "");
    assert!(!without.contains("Providers recorded"), "{without}");
}
