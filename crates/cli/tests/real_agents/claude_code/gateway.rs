//! Claude Code with an MCP server after `offcut mcp`, and without any hook.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use offcut::hint::Hint;
use offcut_testkit::ShownResult;
use serde_json::{Value, json};

use crate::model::{Call, Script};
use crate::script::Tools;
use crate::session::{Client, Offcut, run, write};

use super::ClaudeCode;

/// Claude Code whose server `probe` runs in the gateway.
struct WithGateway(ClaudeCode, Way);

/// The way to the gateway.
enum Way {
    /// Its command is in the settings.
    Command,
    /// Its URL is in the settings, and it runs.
    Url(Mutex<Option<Running>>),
}

/// A process that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Starts the gateway with clients over HTTP. Returns its URL.
fn listen(home: &Path, server: &[PathBuf; 2]) -> (Running, String) {
    let mut gateway = Command::new(env!("CARGO_BIN_EXE_offcut"));
    gateway.args(["mcp", "--listen", "127.0.0.1:0", "--"]);
    gateway
        .args(server)
        .env("HOME", home)
        .env_remove("OFFCUT_HOME");
    let mut gateway = gateway.stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    let stdout = gateway.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut url).unwrap();
    (Running(gateway), url.trim().to_owned())
}

impl Tools for WithGateway {
    fn shell(&self, command: &str) -> Call {
        self.0.shell(command)
    }

    fn read(&self, path: &Path, offset: usize, limit: usize) -> Call {
        self.0.read(path, offset, limit)
    }

    fn edit(&self, path: &Path, old: &str, new: &str) -> Call {
        self.0.edit(path, old, new)
    }

    fn write(&self, path: &Path, content: &str) -> Call {
        self.0.write(path, content)
    }

    fn rows(&self, arguments: Value) -> Option<Call> {
        self.0.rows(arguments)
    }

    fn lines_read(&self, result: &str) -> Vec<String> {
        self.0.lines_read(result)
    }
}

impl Client for WithGateway {
    const NAME: &'static str = ClaudeCode::NAME;
    const PROGRAM: &'static str = ClaudeCode::PROGRAM;
    const EXIT_3: Option<&'static str> = None;

    fn excerpt(&self) -> &'static str {
        self.0.excerpt()
    }

    fn settle(&self, home: &Path, _url: &str, mcp: &[PathBuf; 2]) {
        let server = match &self.1 {
            Way::Command => {
                let gateway = env!("CARGO_BIN_EXE_offcut");
                json!({"command": gateway, "args": ["mcp", "--", mcp[0], mcp[1]]})
            }
            Way::Url(running) => {
                let (gateway, url) = listen(home, mcp);
                *running.lock().unwrap() = Some(gateway);
                json!({"type": "http", "url": url})
            }
        };
        write(
            &home.join("mcp.json"),
            &json!({"mcpServers": {"probe": server}}),
        );
    }

    fn start(&self, command: &mut Command, home: &Path, url: &str) {
        self.0.start(command, home, url);
        command.args(["--allowedTools", "mcp__probe"]);
    }
}

/// Asks for rows and for a table, and reads the last row of each result by its hint.
fn script(_: &Path) -> Script {
    Arc::new(|rounds: &[Vec<ShownResult>]| {
        let read = |shown: &ShownResult, last: &str| {
            let path = hint(&shown.text).expect("a hint").location.expect("stored");
            let arguments = json!({"path": path.to_string(), "pattern": last});
            vec![("mcp__probe__read_stored_result", arguments)]
        };
        Some(match rounds {
            [] => vec![("mcp__probe__rows", json!({"count": 2_000}))],
            [rows] => read(&rows[0], "^row 1999 "),
            [_, _] => vec![("mcp__probe__table", json!({"count": 500}))],
            [_, _, table] => read(&table[0], r"\{.n.:499,"),
            _ => return None,
        })
    })
}

/// The hint in a result: all of it, or a string in its JSON.
fn hint(text: &str) -> Option<Hint> {
    fn inside(value: &Value) -> Option<Hint> {
        match value {
            Value::String(text) => Hint::parse(text),
            Value::Array(items) => items.iter().find_map(inside),
            Value::Object(fields) => fields.values().find_map(inside),
            _ => None,
        }
    }
    Hint::parse(text).or_else(|| inside(&serde_json::from_str(text).ok()?))
}

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_reads_results_of_a_server_behind_the_gateway() {
    claude_code_reads_results(Way::Command);
}

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_reads_results_over_http() {
    claude_code_reads_results(Way::Url(Mutex::default()));
}

fn claude_code_reads_results(way: Way) {
    let client = ClaudeCode { rules: None };
    let session = run(&WithGateway(client, way), Offcut::Absent, script);
    assert_eq!(session.code, Some(0));
    let [rows, row, table, cell] = &session.rounds[..] else {
        panic!("{:#?}", session.rounds);
    };
    for shown in [rows, table] {
        assert!(
            shown[0].text.len() < 9_000 && !shown[0].is_error,
            "{shown:?}"
        );
        let location = hint(&shown[0].text).unwrap().location.unwrap();
        // The model's own call ids name the results; over HTTP, after what nobody can guess.
        let name = location
            .as_str()
            .split("/trunc/")
            .nth(1)
            .unwrap_or_default();
        assert!(name.contains("toolu_"), "{location}");
    }
    assert!(row[0].text.contains("row 1999 of the server"), "{row:?}");
    // The client shows the model nothing but the structured content.
    let shown: Value = serde_json::from_str(&table[0].text).unwrap();
    assert_eq!(
        (&shown["total"], &shown["rows"][1]["n"]),
        (&json!(500), &json!(1))
    );
    assert!(cell[0].text.contains(r#"{"n":499,"#), "{cell:?}");
}
