//! Bounds on success in `offcut replay`.

use std::fs;

use crate::support::{succeed, words};
use serde_json::{Value, json};

/// A file of which one line is edited: in its middle, which the policy cuts out, or in its first line.
fn session(tool: &str, edited: &str) -> String {
    let file = format!(
        "first line of the file\n{}let limit_of_reads = 41;\n{}",
        words("some"),
        words("more")
    );
    let call = |id: &str, name: &str, arguments: Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
    };
    let result =
        |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let messages = json!([
        {"role": "user", "content": "Mend it."},
        call("a", "view", json!({"file": "reads.rs"})),
        result("a", &file),
        call("b", tool, json!({"old_string": edited, "new_string": "something else"})),
        result("b", "Done."),
        {"role": "assistant", "content": "Done."},
    ]);
    json!({"messages": messages}).to_string()
}

#[test]
fn an_edit_of_what_is_out_of_view_fails_at_least_and_is_read_back_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = [
        ("1.json", session("Edit", "let limit_of_reads = 41;")),
        ("2.json", session("Edit", "first line of the file")),
        ("3.json", session("look_up", "let limit_of_reads = 41;")),
        ("4.json", session("patch_file", "let limit_of_reads = 41;")),
    ];
    for (name, text) in &sessions {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let policy = folder.path().join("cut.toml");
    fs::write(
        &policy,
        "max_length_for_trunc = 2_000\npreview_length = 500",
    )
    .unwrap();
    let folder = folder.path().to_str().unwrap();
    let policy = format!("cut={}", policy.display());
    let traces: Vec<String> = sessions
        .iter()
        .map(|(name, _)| format!("{folder}/{name}"))
        .collect();
    let mut args = vec!["replay"];
    args.extend(traces.iter().map(String::as_str));
    args.extend(["--policy", &policy]);
    let out = succeed(&args, "");
    let row = out
        .lines()
        .find(|line| line.contains("cut") && line.contains("Edit 1, patch_file 1"));
    assert!(
        row.is_some_and(|row| row.contains("50.0%") && row.contains("100.0%")),
        "{out}"
    );

    args.push("--json");
    let out: Value = serde_json::from_str(&succeed(&args, "")).unwrap();
    let [none, cut] = [&out["policies"][0], &out["policies"][1]];
    assert_eq!(
        none["bounds"],
        json!({"transcripts": 4, "at_least": 4, "at_most": 4, "first_to_fail": {}})
    );
    assert_eq!(
        cut["bounds"],
        json!({"transcripts": 4, "at_least": 2, "at_most": 4, "first_to_fail": {"Edit": 1, "patch_file": 1}})
    );
    assert_eq!(
        cut["traces"][0]["ungrounded"],
        json!([{"call": 1, "tool": "Edit", "text": "let limit_of_reads = 41;", "is_readable": true}])
    );
    assert_eq!(cut["traces"][1]["ungrounded"], json!([]));
    // A tool whose name says that it only looks is not an action.
    assert_eq!(cut["traces"][2]["ungrounded"], json!([]));
}
