//! Claude Code.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::model::Call;
use crate::script::{Tools, text};
use crate::session::{Client, compare};

struct ClaudeCode;

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

    fn rows(&self, count: usize) -> Option<Call> {
        Some(("mcp__probe__rows", json!({"count": count})))
    }

    fn lines_read(&self, result: &str) -> Vec<String> {
        let numbered = result.lines().filter_map(|line| line.split_once('\t'));
        let is_number = |number: &str| number.trim().parse::<usize>().is_ok();
        numbered
            .filter(|(number, _)| is_number(number))
            .map(|(_, line)| line.to_owned())
            .collect()
    }
}

impl Client for ClaudeCode {
    const NAME: &'static str = "claude-code";

    fn command(&self, agents: &Path, home: &Path, url: &str, mcp: &[PathBuf; 2]) -> Command {
        let servers = json!({"mcpServers": {"probe": {"command": mcp[0], "args": [mcp[1]]}}});
        let config = home.join("mcp.json");
        std::fs::write(&config, servers.to_string()).unwrap();
        let mut command = Command::new("timeout");
        command
            .arg("120")
            .arg(agents.join("claude-code/bin/claude"))
            .args(["-p", "Work in this project.", "--mcp-config"])
            .arg(config)
            // Reading is not in this list: the store must be readable by its rule alone.
            .args(["--allowedTools", "Bash,Edit,Write,mcp__probe__rows"])
            .env("ANTHROPIC_BASE_URL", url)
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        command
    }
}

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_works_the_same_and_costs_less() {
    compare(|| ClaudeCode);
}
