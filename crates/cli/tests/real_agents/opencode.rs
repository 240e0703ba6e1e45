//! OpenCode.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::compare::compare;
use crate::model::Call;
use crate::permissions::{ALLOWED, ASKED, DENIED, READING, compare_permissions};
use crate::script::{Tools, cut, numbered, text};
use crate::session::{Client, Offcut, write};

struct OpenCode {
    /// The settings have rules for the shell.
    has_rules: bool,
}

const PLAIN: OpenCode = OpenCode { has_rules: false };

/// Number of UTF-16 units to which its reader cuts a line.
const LONGEST_LINE: usize = 2_000;

impl Tools for OpenCode {
    fn shell(&self, command: &str) -> Call {
        ("bash", json!({"command": command}))
    }

    fn read(&self, path: &Path, offset: usize, limit: usize) -> Call {
        (
            "read",
            json!({"filePath": text(path), "offset": offset, "limit": limit}),
        )
    }

    fn edit(&self, path: &Path, old: &str, new: &str) -> Call {
        (
            "edit",
            json!({"filePath": text(path), "oldString": old, "newString": new}),
        )
    }

    fn write(&self, path: &Path, content: &str) -> Call {
        ("write", json!({"filePath": text(path), "content": content}))
    }

    fn rows(&self, arguments: Value) -> Option<Call> {
        Some(("probe_rows", arguments))
    }

    fn lines_read(&self, result: &str) -> Vec<String> {
        numbered(result, ": ")
    }

    fn line_shown(&self, line: &str) -> String {
        cut(line, LONGEST_LINE, "... (line truncated to 2000 chars)")
    }
}

impl Client for OpenCode {
    const NAME: &'static str = "opencode";
    const PROGRAM: &'static str = "opencode/bin/opencode";
    // A command that fails is a result like others, and no part of it tells the exit code.
    const EXIT_3: Option<&'static str> = None;

    fn excerpt(&self) -> &'static str {
        "...output truncated..."
    }

    fn settle(&self, home: &Path, url: &str, mcp: &[PathBuf; 2]) {
        let mut settings = json!({
            "model": "anthropic/scripted",
            "small_model": "anthropic/scripted",
            "provider": {"anthropic": {
                "npm": "@ai-sdk/anthropic",
                "options": {"baseURL": format!("{url}/v1"), "apiKey": "none"},
                "models": {"scripted": {"limit": {"context": 1_000_000, "output": 4_096}}},
            }},
            "mcp": {"probe": {"type": "local", "command": mcp}},
        });
        if self.has_rules {
            let mut rules = json!({"*": "ask"});
            // The last rule that matches counts.
            let starts = [&ALLOWED[..], &READING].concat();
            for (starts, answer) in [(&starts[..], "allow"), (&ASKED, "ask"), (&DENIED, "deny")] {
                for start in starts {
                    rules[format!("{start}*")] = answer.into();
                }
            }
            settings["permission"] = json!({"bash": rules});
            // Otherwise the first refusal ends the session.
            settings["experimental"] = json!({"continue_loop_on_deny": true});
        }
        write(&home.join(".config/opencode/opencode.json"), &settings);
    }

    fn start(&self, command: &mut Command, _home: &Path, url: &str) {
        command
            .args(["run", "Work in this project."])
            .env("ANTHROPIC_BASE_URL", url)
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
            .env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    }
}

#[test]
#[ignore = "needs OpenCode: scripts/agents opencode"]
fn opencode_works_the_same_and_costs_less() {
    compare(|| PLAIN, Offcut::Installed);
}

#[test]
#[ignore = "needs OpenCode: scripts/agents opencode"]
fn opencode_works_the_same_with_a_server_before_its_provider() {
    compare(|| PLAIN, Offcut::Wrapping);
}

#[test]
#[ignore = "needs OpenCode: scripts/agents opencode"]
fn opencode_asks_for_the_same_permissions() {
    let client = OpenCode { has_rules: true };
    let run = compare_permissions(&client, |shown| shown.is_error);
    assert_eq!(
        run,
        ["find . -name small.txt -delete", "echo one > small.txt"]
    );
}
