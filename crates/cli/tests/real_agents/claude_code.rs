//! Claude Code.

mod gateway;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::compare::compare;
use crate::model::Call;
use crate::permissions::{ALLOWED, ASKED, DENIED, compare_permissions};
use crate::resumed::{compact, resume};
use crate::script::{Tools, numbered, text};
use crate::session::{Client, Offcut, Resumes, write};

/// Claude Code, with the rules in the settings of its user. Without rules, everything that the script needs is allowed on
/// its command line.
struct ClaudeCode {
    rules: Option<Value>,
}

impl Tools for ClaudeCode {
    fn shell(&self, command: &str) -> Call {
        (
            "Bash",
            json!({"command": command, "description": "a command"}),
        )
    }

    fn read(&self, path: &Path, offset: usize, limit: usize) -> Call {
        (
            "Read",
            json!({"file_path": text(path), "offset": offset, "limit": limit}),
        )
    }

    fn edit(&self, path: &Path, old: &str, new: &str) -> Call {
        (
            "Edit",
            json!({"file_path": text(path), "old_string": old, "new_string": new}),
        )
    }

    fn write(&self, path: &Path, content: &str) -> Call {
        (
            "Write",
            json!({"file_path": text(path), "content": content}),
        )
    }

    fn rows(&self, arguments: Value) -> Option<Call> {
        Some(("mcp__probe__rows", arguments))
    }

    fn lines_read(&self, result: &str) -> Vec<String> {
        numbered(result, "\t")
    }
}

impl Client for ClaudeCode {
    const NAME: &'static str = "claude-code";
    const PROGRAM: &'static str = "claude-code/bin/claude";
    // No hook can replace the result of a command that fails.
    const EXIT_3: Option<&'static str> = Some("Exit code 3");

    fn excerpt(&self) -> &'static str {
        "<persisted-output>"
    }

    fn settle(&self, home: &Path, _url: &str, mcp: &[PathBuf; 2]) {
        let servers = json!({"mcpServers": {"probe": {"command": mcp[0], "args": [mcp[1]]}}});
        write(&home.join("mcp.json"), &servers);
        if let Some(rules) = &self.rules {
            let settings = json!({"permissions": rules});
            write(&home.join(".claude/settings.json"), &settings);
        }
    }

    fn start(&self, command: &mut Command, home: &Path, url: &str) {
        command
            .args(["-p", "Work in this project.", "--mcp-config"])
            .arg(home.join("mcp.json"))
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            // Tokens, fewer than the model counts once it says that its window is full.
            .env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "150000");
        if self.rules.is_none() {
            // Reading is not in this list: the store must be readable by its rule alone.
            command.args(["--allowedTools", "Bash,Edit,Write,mcp__probe__rows"]);
        }
    }
}

impl Resumes for ClaudeCode {
    fn resume(&self, command: &mut Command, home: &Path, url: &str) {
        self.start(command, home, url);
        command.arg("--continue");
    }
}

const PLAIN: fn() -> ClaudeCode = || ClaudeCode { rules: None };

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_works_the_same_and_costs_less() {
    compare(PLAIN, Offcut::Installed);
}

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_works_the_same_with_a_server_before_its_provider() {
    compare(PLAIN, Offcut::Wrapping);
}

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_goes_on_with_a_session_after_a_server() {
    resume(PLAIN);
}

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_compacts_a_session_after_a_server() {
    compact(PLAIN);
}

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_asks_for_the_same_permissions() {
    let rules = |starts: &[&str]| {
        let rules = starts.iter().map(|start| format!("Bash({start}:*)"));
        rules.collect::<Vec<_>>()
    };
    let rules = json!({"allow": rules(&ALLOWED), "ask": rules(&ASKED), "deny": rules(&DENIED)});
    let client = ClaudeCode { rules: Some(rules) };
    let run = compare_permissions(&client, |shown| shown.is_error);
    assert_eq!(run, ["cat small.txt"]);
}
