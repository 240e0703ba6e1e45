//! The client's questions for permission, which Offcut must neither answer nor raise.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::ClaudeCode;
use crate::compare::{compare_results, same_files};
use crate::model::Shown;
use crate::script::Tools;
use crate::session::{Offcut, run};

/// Lines that run under the rules.
const RUN: [&str; 12] = [
    "ls",
    "ls sub",
    "echo one",
    "echo one && echo two",
    "echo one | tail -n 1",
    "printf 'one\n'",
    "seq 1 3000",
    "seq 1 3000 | head -n 2000",
    "cat small.txt",
    "grep -c line big.txt",
    "find . -type f -name small.txt",
    "mkdir made",
];

/// Lines that are denied, or for which the user is asked, without anybody to answer.
const REFUSED: [&str; 19] = [
    "cat data.bin",
    "seq 1 3000 && cat data.bin",
    "rm small.txt",
    "rm -rf sub",
    "echo one; rm small.txt",
    "seq 1 3000 && rm small.txt",
    "seq 1 3000 | xargs rm",
    "echo $(rm small.txt)",
    "(rm small.txt)",
    "timeout 5 rm small.txt",
    "A=1 rm small.txt",
    "sh -c 'rm small.txt'",
    "find . -name small.txt -delete",
    "touch touched",
    "seq 1 3000 && touch touched",
    "echo one > small.txt",
    "sed -i s/small/large/ small.txt",
    "python3 -c 'print(1)'",
    "curl http://127.0.0.1:9",
];

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_asks_for_the_same_permissions() {
    compare_permissions(false);
}

#[test]
#[ignore = "needs Claude Code: scripts/agents claude-code"]
fn claude_code_asks_for_the_same_permissions_with_its_lines_run_by_ours() {
    compare_permissions(true);
}

fn compare_permissions(shell_lines: bool) {
    let rules = json!({
        "allow": ["Bash(ls:*)", "Bash(echo:*)", "Bash(printf:*)", "Bash(seq:*)", "Bash(mkdir made)"],
        "ask": ["Bash(touch:*)"],
        "deny": ["Bash(rm:*)", "Bash(cat data.bin)", "Bash(curl:*)"],
    });
    let client = ClaudeCode {
        rules: Some(rules),
        shell_lines,
    };
    let lines = RUN.iter().chain(&REFUSED).map(|line| client.shell(line));
    // The rule that opens the store opens nothing beside it.
    let elsewhere = client.read(Path::new("/etc/passwd"), 1, 10);
    let calls: Arc<[_]> = lines.chain([elsewhere]).collect();
    let session = |offcut| {
        let calls = calls.clone();
        let next = move |rounds: &[Vec<Shown>]| Some(vec![calls.get(rounds.len())?.clone()]);
        run(&client, offcut, |_| Arc::new(next))
    };
    let without = session(Offcut::Absent);
    let with = session(Offcut::Installed);
    let shortened = compare_results(&client, &with, &without);
    for session in [&without, &with] {
        assert_eq!(session.code, Some(0));
        let results: Vec<_> = session.rounds.iter().flatten().collect();
        assert_eq!(results.len(), calls.len());
        for (nth, shown) in results.into_iter().enumerate() {
            let is_refused = nth >= RUN.len();
            assert_eq!(shown.is_error, is_refused, "{:?}: {shown:?}", calls[nth]);
        }
        same_files(session, &without);
        let small = session
            .files
            .iter()
            .find(|(path, _)| path == Path::new("small.txt"));
        assert_eq!(small.map(|(_, bytes)| &**bytes), Some(&b"small\n"[..]));
        assert_eq!(session.files.len(), 3);
    }
    println!(
        "{} calls, {} refused, {shortened} shortened",
        calls.len(),
        calls.len() - RUN.len()
    );
}
