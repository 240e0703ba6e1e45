//! Outcomes of commands that test, build, lint, check or install: lines that report failures.

use std::sync::LazyLock;

use offcut::ToolCall;
use offcut::format::Message;
use regex::Regex;
use serde_json::Value;

use crate::evidence::{Kind, Need, Read, pattern};

/// Maximum number of failing lines of a result that count.
const MAX_FAILING: usize = 8;
/// Number of bytes of a line that count.
const MAX_LINE: usize = 160;

static WORK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[^a-z])(?:test|tests|build|lint|check|install|compile|typecheck|tsc|pytest|jest|vitest|eslint|clippy|mypy|ruff|make)(?:[^a-z]|$)",
    )
});
static READING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:[A-Z_]+=\S* +)*(?:cat|sed|grep|rg|ls|head|tail|find|git|echo|wc|nl|awk|cd|tree|printf|mkdir|rm|cp|mv|touch|which|export|sleep|kill|ps|curl|jq|diff|stat|file|pwd|test|\[)(?: |$)",
    )
});
static FAILING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\bFAIL(?:ED|URE)?\b|\bERROR\b|\bFATAL\b|\berror(?:\[\w+\])?:|\berror TS[0-9]|\w*(?:Error|Exception)\b: |panicked at|^\s*(?:✗|✘|✕|×|not ok) ",
    )
});

/// Returns true if a line of a shell tests, builds, lints, checks or installs.
fn is_work(command: &str) -> bool {
    let parts = command.split(['\n', ';', '|', '&']).map(str::trim);
    parts.into_iter().any(|part| {
        let part = part.trim_start_matches(['(', '{', ' ']);
        !READING.is_match(part) && WORK.is_match(part)
    })
}

/// Distinct lines that report failures, the first few of them.
fn failing(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| FAILING.is_match(line)) {
        let mut line = line.trim();
        // Of a long line, the stretch that tells.
        if line.len() > MAX_LINE {
            line = FAILING
                .find(line)
                .map_or(line, |found| found.as_str().trim());
        }
        let line = line.to_owned();
        if lines.len() < MAX_FAILING && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// For each turn, the failing lines of the results that it gets to see first.
pub(super) fn of(read: &Read<'_>) -> Vec<Vec<Need>> {
    let (mut turns, mut new) = (Vec::new(), Vec::new());
    let mut open: Vec<(String, bool)> = Vec::new();
    for (at, message) in read.messages.iter().enumerate() {
        match message.message {
            Message::Assistant { calls, .. } => {
                turns.push(std::mem::take(&mut new));
                let work = |call: &ToolCall| (call.id.clone(), is_work(&command(&call.arguments)));
                open = calls.iter().map(work).collect();
            }
            Message::Tool { call_id, .. } => {
                let call = open.iter().position(|(open, _)| open == call_id);
                if call.is_some_and(|call| open.remove(call).1) {
                    let need = |text| Need {
                        kind: Kind::Failing,
                        text,
                        holders: vec![at],
                    };
                    new.extend(failing(&message.text).into_iter().map(need));
                }
            }
            Message::System { .. } | Message::User { .. } => {}
        }
    }
    turns
}

/// The command among a call's arguments; empty if it runs none.
fn command(arguments: &str) -> String {
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else {
        return String::new();
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            words.join(" ")
        }
        _ => String::new(),
    };
    ["command", "cmd", "script"]
        .iter()
        .find_map(|field| arguments.get(field).map(text))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_work_are_told_from_those_that_read() {
        for command in [
            "cargo test",
            "cd app && npm run build 2>&1 | tail -5",
            "CI=1 bun test src",
            "npx tsc --noEmit",
            "pip install x",
            "./scripts/check",
        ] {
            assert!(is_work(command), "{command}");
        }
        for command in [
            "cat tests/a.rs",
            "grep -rn test src | head",
            "git log -- build",
            "ls test",
            "node run.js",
            "echo checked; find build",
        ] {
            assert!(!is_work(command), "{command}");
        }
    }

    #[test]
    fn failing_lines_are_distinct_and_few() {
        let text = "ok\nFAIL a.test.ts\nFAIL a.test.ts\nsrc/a.ts(1,2): error TS2304: x\nError: no\n  ✗ adds\n0 errors\n";
        assert_eq!(
            failing(text),
            [
                "FAIL a.test.ts",
                "src/a.ts(1,2): error TS2304: x",
                "Error: no",
                "✗ adds"
            ]
        );
        let many: String = (0..20).map(|n| format!("FAIL {n}\n")).collect();
        assert_eq!(failing(&many).len(), MAX_FAILING);
    }
}
