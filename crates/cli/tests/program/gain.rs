//! `offcut gain` over what hooks have noted.

use std::path::Path;

use crate::support::{Ran, command, run_command, shell_event};
use serde_json::{Value, json};

fn offcut(home: &Path, args: &[&str], stdin: &str) -> Ran {
    let mut command = command(args);
    command.env("OFFCUT_HOME", home).env("HOME", home);
    run_command(&mut command, stdin)
}

#[test]
fn hooks_note_sizes_and_gain_adds_them_up() {
    let home = tempfile::tempdir().unwrap();
    let none = offcut(home.path(), &["gain"], "");
    assert_eq!(none.code, 0);
    assert!(
        none.out.contains("has no rows yet") && none.err.contains("offcut doctor"),
        "{none:?}"
    );

    let long: String = (0..3_000).map(|n| format!("secret {n}\n")).collect();
    let shown = offcut(
        home.path(),
        &["hook", "claude-code"],
        &shell_event("a", &long),
    )
    .out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let shown = &shown["hookSpecificOutput"]["updatedToolOutput"]["stdout"];
    offcut(
        home.path(),
        &["hook", "claude-code"],
        &shell_event("b", "short\n"),
    );
    let journal = std::fs::read_to_string(home.path().join("journal.jsonl")).unwrap();
    assert!(
        !journal.contains("secret") && !journal.contains("make"),
        "{journal}"
    );

    let gain = offcut(home.path(), &["gain", "--json"], "");
    let gain: Value = serde_json::from_str(&gain.out).unwrap();
    let after = shown.as_str().unwrap().len() + 6;
    assert_eq!(gain["bytes_before"], long.len() + 6);
    assert_eq!(gain["bytes_after"], after);
    assert_eq!(
        (&gain["shortened"], &gain["sessions"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(gain["rows"][0]["what"], "Bash");

    let text = offcut(home.path(), &["gain"], "").out;
    assert!(
        text.contains("In 1 session, 1 of 2 results and requests became shorter")
            && text.contains("claude-code Bash"),
        "{text}"
    );
}

#[test]
fn a_call_has_one_result_however_many_texts_it_has() {
    let home = tempfile::tempdir().unwrap();
    let hook = |tool: &str, input: Value, response: Value| {
        let event = json!({
            "hook_event_name": "PostToolUse", "session_id": "s1", "cwd": "/", "tool_use_id": tool,
            "tool_name": tool, "tool_input": input, "tool_response": response,
        });
        let ran = offcut(home.path(), &["hook", "claude-code"], &event.to_string());
        serde_json::from_str::<Value>(&ran.out).unwrap_or_default()
    };
    let long: String = (0..3_000).map(|n| format!("number {n}\n")).collect();
    let bash = |stdout: &str| json!({"stdout": stdout, "stderr": "warning"});
    let shown = hook("Bash", json!({"command": "make"}), bash(&long));
    let shown = &shown["hookSpecificOutput"]["updatedToolOutput"]["stdout"];
    let location = shown.as_str().unwrap().split('"').nth(1).unwrap();
    let parts = ["one", "two", &long].map(|text| json!({"type": "text", "text": text}));
    hook("mcp__db__query", json!({}), json!(parts));
    let command = format!("head -n1 {location}");
    hook("Bash", json!({"command": command}), bash("number 0\n"));
    let gain = offcut(home.path(), &["gain", "--json"], "").out;
    let gain: Value = serde_json::from_str(&gain).unwrap();
    let count = |name: &str| gain[name].as_u64().unwrap();
    assert_eq!(
        ["count", "shortened", "reads"].map(count),
        [3, 2, 1],
        "{gain}"
    );
    let texts = long.len() + "warning".len() + "onetwo".len() + long.len();
    assert_eq!(count("bytes_before"), texts as u64);
}

#[test]
fn what_became_longer_is_not_called_less() {
    let home = tempfile::tempdir().unwrap();
    let row = |before: u64, after: u64| {
        json!({
            "time": 1, "by": "claude-code", "what": "Bash", "session": "s", "before": before, "after": after,
        })
    };
    let text = |row: Value| {
        std::fs::write(home.path().join("journal.jsonl"), format!("{row}\n")).unwrap();
        offcut(home.path(), &["gain"], "").out
    };
    let longer = text(row(2_300, 4_300));
    let said = "4 300 bytes in place of 2 300: 2 000 more, some 500 tokens";
    assert!(longer.contains(said), "{longer}");
    let shorter = text(row(4_300, 2_300));
    assert!(shorter.contains("2 000 less, some 500 tokens"), "{shorter}");
}

#[test]
fn whatever_a_journal_holds_is_shown_as_text() {
    let home = tempfile::tempdir().unwrap();
    let row = |before: u64, after: u64| {
        json!({
            "time": 1, "by": "\u{1b}[2Jlab\u{202e}", "session": "\n", "what": "\u{1b}]0;x\u{7}",
            "client": "\r", "before": before, "after": after, "replaced": u64::MAX,
        })
    };
    let rows = [
        row(u64::MAX, 0),
        row(1, u64::MAX),
        json!({"time": -1}),
        json!(7),
    ];
    let rows = rows.map(|row| format!("{row}\n")).concat();
    std::fs::write(home.path().join("journal.jsonl"), rows + "\u{0}{\"time\"").unwrap();
    let shown = offcut(home.path(), &["gain"], "");
    assert_eq!((shown.code, &*shown.err), (0, ""));
    let is_shown = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
    assert!(shown.out.chars().all(is_shown), "{:?}", shown.out);
    let all = offcut(home.path(), &["gain", "--json"], "").out;
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all["count"], 2);
    let recent = offcut(home.path(), &["gain", "--since", "7d"], "");
    assert!(recent.out.contains("has nothing that recent"), "{recent:?}");
}
