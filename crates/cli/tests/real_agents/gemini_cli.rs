//! Gemini CLI.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::compare::compare;
use crate::model::Call;
use crate::permissions::{ALLOWED, ASKED, DENIED, READING, compare_permissions};
use crate::script::{Tools, cut, hints, text};
use crate::session::{Client, Offcut, write};

struct GeminiCli {
    /// The user has rules for the shell.
    has_rules: bool,
}

const PLAIN: GeminiCli = GeminiCli { has_rules: false };

/// Number of UTF-16 units to which its reader cuts a line.
const LONGEST_LINE: usize = 2_000;

impl Tools for GeminiCli {
    fn shell(&self, command: &str) -> Call {
        ("run_shell_command", json!({"command": command}))
    }

    fn read(&self, path: &Path, offset: usize, limit: usize) -> Call {
        let end = offset + limit - 1;
        (
            "read_file",
            json!({"file_path": text(path), "start_line": offset, "end_line": end}),
        )
    }

    fn edit(&self, path: &Path, old: &str, new: &str) -> Call {
        let mut arguments = json!({"file_path": text(path), "instruction": "a change"});
        arguments["old_string"] = old.into();
        arguments["new_string"] = new.into();
        ("replace", arguments)
    }

    fn write(&self, path: &Path, content: &str) -> Call {
        (
            "write_file",
            json!({"file_path": text(path), "content": content}),
        )
    }

    fn rows(&self, arguments: Value) -> Option<Call> {
        Some(("mcp_probe_rows", arguments))
    }

    fn lines_read(&self, result: &str) -> Vec<String> {
        // It says above a page that there is more.
        let page = result.split_once("--- FILE CONTENT (truncated) ---\n");
        let page = page.map_or(result, |(_, page)| page);
        page.lines().map(ToOwned::to_owned).collect()
    }

    fn line_shown(&self, line: &str) -> String {
        cut(line, LONGEST_LINE, "... [truncated]")
    }
}

impl Client for GeminiCli {
    const NAME: &'static str = "gemini-cli";
    const PROGRAM: &'static str = "gemini-cli/bin/gemini";
    const EXIT_3: Option<&'static str> = Some("Exit Code: 3");
    const REPLACES_BY_ERRORS: bool = true;

    fn excerpt(&self) -> &'static str {
        "Output too large."
    }

    fn settle(&self, home: &Path, _url: &str, mcp: &[PathBuf; 2]) {
        let mut settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false},
            "general": {"enableAutoUpdate": false},
            "mcpServers": {"probe": {"command": mcp[0], "args": [mcp[1]], "trust": true}},
            // Reading needs no permission in the project and in its temporary folder, and has none elsewhere.
            "tools": {"allowed": ["run_shell_command", "replace", "write_file"]},
        });
        if self.has_rules {
            settings["tools"] = json!({});
            let rule = |starts: &[&str], decision: &str, priority: u16| {
                format!(
                    "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = {starts:?}\ndecision = \"{decision}\"\npriority = {priority}\n"
                )
            };
            let allowed = [&ALLOWED[..], &READING].concat();
            let rules = rule(&allowed, "allow", 100) + &rule(&ASKED, "ask_user", 200);
            let path = home.join(".gemini/policies/rules.toml");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, rules + &rule(&DENIED, "deny", 300)).unwrap();
        }
        write(&home.join(".gemini/settings.json"), &settings);
    }

    fn start(&self, command: &mut Command, _home: &Path, url: &str) {
        command
            .args(["--skip-trust", "-p", "Work in this project."])
            .env("GEMINI_API_KEY", "none")
            .env("GOOGLE_GEMINI_BASE_URL", url);
    }

    fn differs(&self, line: &str) -> bool {
        line.contains("/tmp") || line.starts_with("Process Group PGID: ")
    }
}

#[test]
#[ignore = "needs Gemini CLI: scripts/agents gemini-cli"]
fn gemini_cli_works_the_same_and_costs_less() {
    compare(|| PLAIN, Offcut::Installed);
}

#[test]
#[ignore = "needs Gemini CLI: scripts/agents gemini-cli"]
fn gemini_cli_works_the_same_with_a_server_before_its_provider() {
    compare(|| PLAIN, Offcut::Wrapping);
}

#[test]
#[ignore = "needs Gemini CLI: scripts/agents gemini-cli"]
fn gemini_cli_asks_for_the_same_permissions() {
    let client = GeminiCli { has_rules: true };
    let run = compare_permissions(&client, |shown| {
        shown.is_error && hints(std::slice::from_ref(shown)).is_empty()
    });
    assert_eq!(run, ["find . -name small.txt -delete"]);
}
