//! Codex.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::compare::compare;
use crate::model::Call;
use crate::permissions::{ALLOWED, ASKED, DENIED, READING, compare_permissions};
use crate::resumed::{compact, resume};
use crate::script::Tools;
use crate::session::{Client, Offcut, Resumes};

struct Codex {
    /// The model is that of the provider that it knows, whose base URL `offcut wrap` sets.
    is_built_in: bool,
    /// The user has rules for the shell.
    has_rules: bool,
}

/// The client with a provider of its own.
const PLAIN: Codex = Codex {
    is_built_in: false,
    has_rules: false,
};

/// Waits until no other test uses it: its sandbox makes `/tmp/.git` for a command and removes it, so that
/// commands of another session fail.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of bytes that are read of a file at once.
const LONGEST: usize = 8_000;

impl Tools for Codex {
    fn shell(&self, command: &str) -> Call {
        ("exec_command", json!({"cmd": command}))
    }

    /// It has a shell alone, of whose output it cuts the middle out.
    fn read(&self, path: &Path, offset: usize, limit: usize) -> Call {
        let (last, file) = (offset + limit - 1, path.display());
        self.shell(&format!(
            "sed -n '{offset},{last}p' {file} | (head -c {LONGEST}; cat >/dev/null)"
        ))
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
        // The page may end inside a character.
        let page = page.map(|page| page.trim_end_matches('\u{fffd}'));
        let lines = page.into_iter().flat_map(str::lines);
        lines.map(ToOwned::to_owned).collect()
    }

    fn page_shown(&self, lines: Vec<String>) -> Vec<String> {
        let page = lines.join("\n");
        let shown = &page[..page.floor_char_boundary(LONGEST)];
        shown.lines().map(ToOwned::to_owned).collect()
    }
}

impl Client for Codex {
    const STREAMS_RACE: bool = true;
    const NAME: &'static str = "codex";
    const PROGRAM: &'static str = "codex/bin/codex";
    const EXIT_3: Option<&'static str> = Some("Process exited with code 3");

    fn excerpt(&self) -> &'static str {
        "tokens truncated"
    }

    fn settle(&self, home: &Path, url: &str, mcp: &[PathBuf; 2]) {
        let [node, server] = mcp.each_ref().map(|path| path.display());
        let provider = if self.is_built_in {
            format!("openai_base_url = \"{url}/v1\"")
        } else {
            format!(
                r#"model_provider = "probe"
[model_providers.probe]
name = "probe"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "PROBE_KEY""#
            )
        };
        let settings = format!(
            r#"# A model that the client does not know has its tools in the request.
model = "scripted"
model_context_window = 1000000
model_auto_compact_token_limit = 150000
{provider}
[mcp_servers.probe]
command = "{node}"
args = ["{server}"]
default_tools_approval_mode = "approve"
"#
        );
        let path = home.join(".codex/config.toml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, settings).unwrap();
        if self.has_rules {
            let allowed = [&ALLOWED[..], &READING].concat();
            let rules = [
                (&allowed[..], "allow"),
                (&ASKED, "prompt"),
                (&DENIED, "forbidden"),
            ];
            let rules = rules.into_iter().flat_map(|(starts, decision)| {
                starts.iter().map(move |start| {
                    let words: Vec<_> = start.split(' ').collect();
                    format!("prefix_rule(pattern={words:?}, decision=\"{decision}\")\n")
                })
            });
            let path = home.join(".codex/rules/default.rules");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, rules.collect::<String>()).unwrap();
        }
    }

    fn trust(&self, mut command: Command, home: &Path) {
        let server = command.arg("app-server").stdin(Stdio::piped());
        let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = server.stdin.take().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let mut ask = |method: &str, params: Value| {
            let request = json!({"id": method, "method": method, "params": params});
            writeln!(stdin, "{request}").unwrap();
            let answers = lines.by_ref().map(|line| line.unwrap());
            let mut answers = answers.map(|line| serde_json::from_str::<Value>(&line).unwrap());
            answers.find(|answer| answer["id"] == method).unwrap()
        };
        ask(
            "initialize",
            json!({"clientInfo": {"name": "test", "version": "1"}}),
        );
        let listed = ask("hooks/list", json!({"cwds": [home.join("project")]}));
        server.kill().unwrap();
        server.wait().unwrap();
        let hook = &listed["result"]["data"][0]["hooks"][0];
        assert_eq!(hook["trustStatus"], "untrusted", "{listed}");
        let (key, hash) = (&hook["key"], &hook["currentHash"]);
        let path = home.join(".codex/config.toml");
        let settings = std::fs::read_to_string(&path).unwrap();
        let trusted = format!("{settings}[hooks.state.{key}]\ntrusted_hash = {hash}\n");
        std::fs::write(path, trusted).unwrap();
    }

    fn start(&self, command: &mut Command, _home: &Path, url: &str) {
        command
            .args([
                "exec",
                "--skip-git-repo-check",
                "--sandbox",
                "workspace-write",
            ])
            .arg("Work in this project.")
            .env("PROBE_KEY", "none")
            .env("CODEX_API_KEY", "none")
            .env("OPENAI_BASE_URL", format!("{url}/v1"));
    }

    fn differs(&self, line: &str) -> bool {
        let of_run = ["Chunk ID: ", "Wall time: ", "Total output lines: "];
        // It drops bytes of an endless output as they arrive.
        let is_endless = "endless".contains(line) || line.contains("endless");
        // The end of its pipe may come before that of the session's own.
        let is_endless = is_endless || line.ends_with("Broken pipe");
        let is_cut = is_endless || line.contains(" omitted ...") || line.contains("truncated");
        line.contains("/tmp") || is_cut || of_run.iter().any(|start| line.starts_with(start))
    }
}

impl Resumes for Codex {
    fn resume(&self, command: &mut Command, _home: &Path, url: &str) {
        command
            .args(["exec", "--skip-git-repo-check", "--sandbox"])
            .args(["workspace-write", "resume", "--last", "Go on."])
            .env("CODEX_API_KEY", "none")
            .env("OPENAI_BASE_URL", format!("{url}/v1"));
    }
}

#[test]
#[ignore = "needs Codex: scripts/agents codex"]
fn codex_works_the_same_and_costs_less() {
    let _alone = alone();
    compare(|| PLAIN, Offcut::Installed);
}

#[test]
#[ignore = "needs Codex: scripts/agents codex"]
fn codex_works_the_same_with_a_server_before_its_provider() {
    let _alone = alone();
    let make = || Codex {
        is_built_in: true,
        ..PLAIN
    };
    compare(make, Offcut::Wrapping);
}

#[test]
#[ignore = "needs Codex: scripts/agents codex"]
fn codex_asks_for_the_same_permissions() {
    let _alone = alone();
    let client = Codex {
        has_rules: true,
        ..PLAIN
    };
    let run = compare_permissions(&client, |shown| shown.text.contains("ejected"));
    // Its sandbox takes lines that no rule knows, and those that no rule sees through.
    assert_eq!(
        run,
        [
            "cat small.txt",
            "seq 1 3000 | xargs rm",
            "echo $(rm small.txt)",
            "(rm small.txt)",
            "timeout 5 rm small.txt",
            "A=1 rm small.txt",
            "sh -c 'rm small.txt'",
            "find . -name small.txt -delete",
            "echo one > small.txt",
            "sed -i s/small/large/ small.txt",
        ]
    );
}

#[test]
#[ignore = "needs Codex: scripts/agents codex"]
fn codex_goes_on_with_a_session_after_a_server() {
    let _alone = alone();
    resume(|| Codex {
        is_built_in: true,
        ..PLAIN
    });
}

#[test]
#[ignore = "needs Codex: scripts/agents codex"]
fn codex_compacts_a_session_after_a_server() {
    let _alone = alone();
    compact(|| Codex {
        is_built_in: true,
        ..PLAIN
    });
}
