//! Outcomes of commands that test, build, lint, check or install: verdicts, and lines that report
//! failures.

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
static EXIT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)(?:exited with code|exit code:?|exit status:?|exit_code"?:|<returncode>|returncode:) ?-?[0-9]+"#,
    )
});
static COUNTS: LazyLock<Regex> = LazyLock::new(|| {
    let things = "tests?|pass|passed|passes|passing|fail|failed|failures?|failing|errors?|warnings?|skipped|problems?|\
                  issues?|suites?|examples?|vulnerabilities|packages?|specs?|assertions?";
    pattern(&format!(
        r"(?i)(?:^|[^0-9a-z.])[0-9]+ (?:\w+ )?(?:{things})(?:[^a-z]|$)|(?:^|[^a-z])(?:{things})[:=]? +[0-9]+(?:[^0-9]|$)"
    ))
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

/// The verdict of an output, in pieces that must all be shown: the last exit code, and the last
/// line of counts; of an output without both, its last line.
fn verdict(text: &str) -> Vec<String> {
    let exit = EXIT.find_iter(text).last();
    let counts = text.lines().rfind(|line| COUNTS.is_match(line));
    let mut pieces: Vec<String> = exit.iter().map(|exit| exit.as_str().to_owned()).collect();
    pieces.extend(counts.map(|line| around(line, &COUNTS)));
    if pieces.is_empty() {
        // Not an empty line, or one of marks only.
        let is_said = |line: &&str| line.contains(char::is_alphanumeric);
        let last = text.lines().map(str::trim).rfind(is_said);
        pieces.extend(last.map(|line| line[..line.floor_char_boundary(MAX_LINE)].to_owned()));
    }
    pieces
}

/// Distinct lines that report failures, the first few of them.
fn failing(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| FAILING.is_match(line)) {
        let line = around(line, &FAILING);
        if lines.len() < MAX_FAILING && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The part of a line that must be shown: all of it, or the stretch that matches `pattern`.
fn around(line: &str, pattern: &Regex) -> String {
    let line = line.trim();
    let found = pattern.find(line).filter(|_| line.len() > MAX_LINE);
    found.map_or(line, |found| found.as_str().trim()).to_owned()
}

/// For each turn, the verdicts and failing lines of the results that it gets to see first.
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
                    let need = |kind, text| Need {
                        kind,
                        text,
                        holders: vec![at],
                    };
                    let verdict = verdict(&message.text);
                    if !verdict.is_empty() {
                        // Pieces are joined by a line feed, which none of them has.
                        new.push(need(Kind::Verdict, verdict.join("\n")));
                    }
                    let lines = failing(&message.text).into_iter();
                    new.extend(lines.map(|line| need(Kind::Failing, line)));
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
    fn verdicts_are_exit_codes_and_counts_or_the_last_line() {
        assert_eq!(
            verdict(
                "Process exited with code 1\nOutput:\n 12 pass\n 0 fail\nRan 12 tests across 3 files. [9ms]\n"
            ),
            ["exited with code 1", "Ran 12 tests across 3 files. [9ms]"]
        );
        assert_eq!(verdict("a\nFound 2 errors.\n\n"), ["Found 2 errors."]);
        assert_eq!(
            verdict("Compiling x\nFinished in 2s\n======\n\n"),
            ["Finished in 2s"]
        );
        assert_eq!(verdict("-----\n"), [""; 0]);
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
