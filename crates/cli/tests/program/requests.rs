//! `offcut replay --requests`: requests that another policy has made, judged by the same measure.
// Helpers are part of the tests.

use std::fs;

use crate::support::{fail, succeed, text};
use serde_json::{Value, json};
use tempfile::tempdir;

/// A session of three calls: a look, an edit of what it showed, and an answer that names it.
fn session() -> Value {
    let call = |id: &str, name: &str, arguments: Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
    };
    let file = format!(
        "first line\n{}let limit_of_reads = 41;\nthe line after it\n{}",
        "some words\n".repeat(200),
        "more words\n".repeat(200)
    );
    json!({"messages": [
        {"role": "user", "content": "Mend it."},
        call("a", "view", json!({})),
        {"role": "tool", "tool_call_id": "a", "content": file},
        call("b", "edit", json!({"old_string": "let limit_of_reads = 41;"})),
        {"role": "tool", "tool_call_id": "b", "content": "Done."},
        {"role": "assistant", "content": "The limit_of_reads is 41."},
    ]})
}

/// Replays the session as a policy that sent `requests`, and returns the rows of doing nothing and of
/// the policy.
fn judged(requests: &[Value]) -> (Value, Value) {
    let folder = tempdir().unwrap();
    let (trace, out) = (folder.path().join("one.json"), folder.path().join("out"));
    fs::write(&trace, session().to_string()).unwrap();
    fs::create_dir(&out).unwrap();
    let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
    fs::write(out.join("one.jsonl"), lines.join("\n")).unwrap();
    let named = format!("other={}", out.display());
    let args = ["replay", "--json", text(&trace), "--requests", &named];
    let mut json: Value = serde_json::from_str(&succeed(&args, "")).unwrap();
    (json["policies"][0].take(), json["policies"][1].take())
}

/// The three requests if message 2 was replaced by `instead`.
fn cleared(instead: &Value) -> [Value; 3] {
    [
        json!({"messages": [0]}),
        json!({"messages": [0, 1, instead]}),
        json!({"keep": 3, "messages": [3, 4]}),
    ]
}

fn said(content: &str) -> Value {
    json!({"instead_of": 2, "role": "tool", "tool_call_id": "a", "content": content})
}

#[test]
fn requests_with_everything_in_them_are_those_of_doing_nothing() {
    let in_full = session()["messages"].as_array().unwrap().clone();
    let by_number = [
        json!({"messages": [0]}),
        json!({"keep": 1, "messages": [1, 2]}),
        json!({"messages": [0, 1, 2, 3, 4]}),
    ];
    let whole = [1, 3, 5].map(|length| json!({"messages": in_full[..length]}));
    for requests in [by_number, whole] {
        let (mut none, mut other) = judged(&requests);
        for row in [&mut none, &mut other] {
            row["name"].take();
            row["traces"].take();
            // A message in full is not known to be whole.
            for kind in row["seen"].as_object_mut().unwrap().values_mut() {
                kind["cut"].take();
            }
        }
        assert_eq!(none, other);
    }
}

#[test]
fn what_is_left_out_is_missed_and_asked_for_again() {
    let (none, other) = judged(&cleared(&said("[cleared]")));
    assert_eq!(
        (&none["named"], &other["named"]),
        (&json!(1.0), &json!(0.0))
    );
    assert_eq!(other["reachable"], json!(0.0));
    assert_eq!(other["seen"]["edits"]["seen"], json!(0.0));
    // One page: the whole result again, which stays for the second use.
    assert_eq!(other["pages"], 1);
    let more = other["bill_pages"].as_f64().unwrap() - other["bill"].as_f64().unwrap();
    assert!(more > 800.0, "{more}");
    // A request that leaves the call out as well shows no more.
    let removed = [
        json!({"messages": [0]}),
        json!({"messages": [0]}),
        json!({"messages": [0, 3, 4]}),
    ];
    assert_eq!(judged(&removed).1["named"], json!(0.0));
}

#[test]
fn what_is_shown_instead_or_added_is_seen() {
    let preview = "…\nlet limit_of_reads = 41;\n…";
    let summary = json!([{"role": "user", "content": preview}, 3, 4]);
    let added = [
        json!({"messages": [0]}),
        json!({"messages": [0, {"role": "user", "content": preview}]}),
        json!({"keep": 1, "messages": summary}),
    ];
    for requests in [cleared(&said(preview)), added] {
        let other = judged(&requests).1;
        assert_eq!(other["named"], json!(1.0));
        assert_eq!(other["seen"]["edits"]["seen"], json!(1.0));
        assert_eq!(other["pages"], json!(0));
    }
}

#[test]
fn what_a_policy_has_stored_is_read_back_by_lines() {
    let with = |lines: u64| {
        let mut requests = cleared(&said("[see file 2]"));
        requests[1]["stored"] = json!({"2": lines});
        judged(&requests).1
    };
    let (whole, page) = (with(0), with(2));
    for other in [&whole, &page] {
        assert_eq!(
            (&other["named"], &other["reachable"]),
            (&json!(0.0), &json!(1.0))
        );
        assert_eq!(
            (&other["pages"], &other["stored_objects"]),
            (&json!(1), &json!(1))
        );
    }
    // Two lines and a message take some twenty tokens, and are there for one further call.
    let more = |row: &Value| row["bill_pages"].as_f64().unwrap() - row["bill"].as_f64().unwrap();
    assert!(
        more(&page) < 40.0 && more(&whole) > 800.0,
        "{} {}",
        more(&page),
        more(&whole)
    );
}

#[test]
fn requests_of_a_policys_own_are_paid_for_and_are_no_call() {
    let mut requests = cleared(&said("[cleared]")).to_vec();
    let before = judged(&requests).1;
    requests.insert(
        1,
        json!({"own": true, "messages": [0, {"role": "user", "content": "word ".repeat(100)}]}),
    );
    let after = judged(&requests).1;
    assert_eq!(before["model_calls"], after["model_calls"]);
    let more = |field: &str| after[field].as_f64().unwrap() - before[field].as_f64().unwrap();
    assert!(
        (100.0..115.0).contains(&more("tokens")),
        "{}",
        more("tokens")
    );
    assert!((more("tokens") - more("bill")).abs() < 1e-9);
    assert_eq!(before["breaks"], after["breaks"]);
}

#[test]
fn requests_that_do_not_fit_their_transcript_are_refused() {
    let ok = || cleared(&said("[cleared]")).to_vec();
    let with = |at: usize, line: Value| {
        let mut requests = ok();
        requests[at] = line;
        requests
    };
    let mut short = ok();
    short.pop();
    let mut long = ok();
    long.push(json!({"messages": []}));
    for (requests, why) in [
        (short, "it has 2 requests, and the transcript 3 model calls"),
        (long, "line 4: the transcript has only 3 model calls"),
        (
            with(1, json!({"keep": 2, "messages": []})),
            "line 2: it keeps 2 messages of the 1",
        ),
        (
            with(1, json!({"messages": [3]})),
            "line 2: message 3 is not known at this call",
        ),
        (
            with(1, json!({"messages": [77]})),
            "line 2: the transcript has no message 77",
        ),
        (
            with(1, json!({"messages": ["x"]})),
            "line 2: a message is neither",
        ),
        (
            with(1, json!({"messages": [], "stored": {"4": 0}})),
            "line 2: message 4 is not known",
        ),
        (
            with(0, json!({"messages": [0], "keeps": 1})),
            "line 1: unknown field `keeps`",
        ),
    ] {
        let folder = tempdir().unwrap();
        let trace = folder.path().join("one.json");
        fs::write(&trace, session().to_string()).unwrap();
        let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
        fs::write(folder.path().join("one.jsonl"), lines.join("\n")).unwrap();
        let named = format!("other={}", folder.path().display());
        let error = fail(&["replay", text(&trace), "--requests", &named], "", 2);
        assert!(error.contains(why), "{why}: {error}");
        assert!(error.contains("docs/peers.md"), "{error}");
    }
    let error = fail(&["replay", "-", "--requests", "x=/does/not/exist"], "", 2);
    assert!(error.contains("does not name a folder"), "{error}");
}
