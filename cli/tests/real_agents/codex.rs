//! Codex.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::compare::compare;
use crate::model::Call;
use crate::script::Tools;
use crate::session::Client;

struct Codex;

impl Tools for Codex {
    fn shell(&self, command: &str) -> Call {
        ("exec_command", json!({"cmd": command}))
    }

    /// It has a shell alone.
    fn read(&self, path: &Path, offset: usize, limit: usize) -> Call {
        let last = offset + limit - 1;
        self.shell(&format!("sed -n '{offset},{last}p' {}", path.display()))
    }

    fn edit(&self, path: &Path, old: &str, new: &str) -> Call {
        let (file, old, new) = (path.display(), old.trim_end(), new.trim_end());
        self.shell(&format!(
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch\nEOF"
        ))
    }

    fn write(&self, path: &Path, content: &str) -> Call {
        let (file, content) = (path.display(), content.trim_end());
        self.shell(&format!(
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {file}\n+{content}\n*** End Patch\nEOF"
        ))
    }

    fn rows(&self, arguments: Value) -> Option<Call> {
        Some(("mcp__probe/rows", arguments))
    }

    fn more_rows(&self) -> Vec<Value> {
        vec![
            json!({"count": 3_000}),
            json!({"count": 900, "structured": true}),
            json!({"count": 6_000, "structured": true}),
            json!({"count": 5, "structured": true}),
            json!({"count": 20_000}),
            json!({"count": 700}),
        ]
    }

    fn lines_read(&self, result: &str) -> Vec<String> {
        let page = result.split_once("\nOutput:\n").map(|(_, page)| page);
        let lines = page.into_iter().flat_map(str::lines);
        lines.map(ToOwned::to_owned).collect()
    }
}

impl Client for Codex {
    const NAME: &'static str = "codex";
    const PROGRAM: &'static str = "codex/bin/codex";
    const EXIT_3: Option<&'static str> = Some("Process exited with code 3");

    fn excerpt(&self) -> &'static str {
        "tokens truncated"
    }

    fn settle(&self, home: &Path, url: &str, mcp: &[PathBuf; 2]) {
        let [node, server] = mcp.each_ref().map(|path| path.display());
        let settings = format!(
            r#"# A model that the client does not know has its tools in the request.
model = "scripted"
model_provider = "probe"
[model_providers.probe]
name = "probe"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "PROBE_KEY"
[mcp_servers.probe]
command = "{node}"
args = ["{server}"]
default_tools_approval_mode = "approve"
"#
        );
        let path = home.join(".codex/config.toml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, settings).unwrap();
    }

    fn start(&self, command: &mut Command, _home: &Path, _url: &str) {
        command
            .args([
                "exec",
                "--skip-git-repo-check",
                "--sandbox",
                "workspace-write",
            ])
            // In place of a user who reads the hook and trusts it.
            .args(["--dangerously-bypass-hook-trust", "Work in this project."])
            .env("PROBE_KEY", "none");
    }

    fn differs(&self, line: &str) -> bool {
        let of_run = ["Chunk ID: ", "Wall time: "];
        line.contains("/tmp") || of_run.iter().any(|start| line.starts_with(start))
    }
}

#[test]
#[ignore = "needs Codex: scripts/agents codex"]
fn codex_works_the_same_and_costs_less() {
    compare(|| Codex);
}
