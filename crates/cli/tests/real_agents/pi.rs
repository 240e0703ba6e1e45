//! pi.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::compare::compare;
use crate::model::Call;
use crate::script::{Tools, text};
use crate::session::{Client, Offcut, write};

struct Pi {
    /// The model is that of a provider that it knows, whose base URL `offcut wrap` sets.
    is_built_in: bool,
}

impl Tools for Pi {
    fn shell(&self, command: &str) -> Call {
        ("bash", json!({"command": command}))
    }

    fn read(&self, path: &Path, offset: usize, limit: usize) -> Call {
        (
            "read",
            json!({"path": text(path), "offset": offset, "limit": limit}),
        )
    }

    fn edit(&self, path: &Path, old: &str, new: &str) -> Call {
        let edits = [json!({"oldText": old, "newText": new})];
        ("edit", json!({"path": text(path), "edits": edits}))
    }

    fn write(&self, path: &Path, content: &str) -> Call {
        ("write", json!({"path": text(path), "content": content}))
    }

    /// None: it has no MCP.
    fn rows(&self, _arguments: Value) -> Option<Call> {
        None
    }

    fn lines_read(&self, result: &str) -> Vec<String> {
        // It says below a page that more follows.
        let page = match result.rsplit_once("\n\n[") {
            Some((page, note)) if note.ends_with(" to continue.]") => page,
            _ => result,
        };
        page.lines().map(ToOwned::to_owned).collect()
    }
}

impl Client for Pi {
    const NAME: &'static str = "pi";
    const PROGRAM: &'static str = "pi/bin/pi";
    const EXIT_3: Option<&'static str> = Some("Command exited with code 3");

    fn excerpt(&self) -> &'static str {
        ". Full output: "
    }

    fn settle(&self, home: &Path, url: &str, _mcp: &[PathBuf; 2]) {
        if self.is_built_in {
            let settings = json!({"providers": {"anthropic": {"baseUrl": url}}});
            return write(&home.join(".pi/agent/models.json"), &settings);
        }
        let model = json!({"id": "scripted", "contextWindow": 1_000_000, "maxTokens": 4_096});
        let provider = json!({"baseUrl": url, "api": "anthropic-messages", "apiKey": "none", "models": [model]});
        let settings = json!({"providers": {"probe": provider}});
        write(&home.join(".pi/agent/models.json"), &settings);
    }

    fn start(&self, command: &mut Command, _home: &Path, url: &str) {
        let model = if self.is_built_in {
            ["anthropic", "claude-sonnet-4-5"]
        } else {
            ["probe", "scripted"]
        };
        command
            .args(["-p", "--provider", model[0], "--model", model[1]])
            .arg("Work in this project.")
            .env("ANTHROPIC_API_KEY", "none")
            .env("ANTHROPIC_BASE_URL", url)
            .env("PI_OFFLINE", "1");
    }
}

#[test]
#[ignore = "needs pi: scripts/agents pi"]
fn pi_works_the_same_and_costs_less() {
    let is_built_in = false;
    compare(|| Pi { is_built_in }, Offcut::Installed);
}

#[test]
#[ignore = "needs pi: scripts/agents pi"]
fn pi_works_the_same_with_a_server_before_its_provider() {
    let is_built_in = true;
    compare(|| Pi { is_built_in }, Offcut::Wrapping);
}
