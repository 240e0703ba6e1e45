//! `offcut replay` over files of agents and logs: read in full, or rejected with the format's name.
// Helpers are part of the tests.

use std::path::Path;

use crate::support::{run, succeed, text};
use serde_json::{Value, json};
use tempfile::tempdir;

/// Replays `files` without a policy and under one that cuts, and returns the JSON.
fn replay(files: &[&str]) -> Value {
    let folder = tempdir().unwrap();
    let cut = folder.path().join("cut.toml");
    std::fs::write(&cut, "max_length_for_trunc = 700\npreview_length = 100").unwrap();
    let policy = format!("cut={}", text(&cut));
    let args = [&["replay", "--json", "--policy", &policy], files].concat();
    serde_json::from_str(&succeed(&args, "")).unwrap()
}

#[test]
fn sessions_that_agents_wrote_are_read_in_full() {
    let sessions = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    for name in [
        "pi.jsonl",
        "gemini-cli.jsonl",
        "swe-agent-text.traj",
        "swe-agent.traj",
        "atif.json",
    ] {
        let json = replay(&[text(&sessions.join(name))]);
        let [none, cut] = [&json["policies"][0], &json["policies"][1]];
        assert_eq!(none["model_calls"], 4, "{name}");
        // The answer uses the first result, and all three are cut.
        assert_eq!(
            (&none["uses"], &none["named"]),
            (&json!(1), &json!(1.0)),
            "{name}"
        );
        assert_eq!(
            (&cut["stored_objects"], &cut["named"]),
            (&json!(3), &json!(0.0)),
            "{name}"
        );
        // The results make up nearly everything, and each is sent with every later call.
        let tokens = none["tokens"].as_u64().unwrap();
        assert!((2_300..2_500).contains(&tokens), "{name}: {tokens}");
    }
    // A folder is searched for them.
    let all = replay(&[text(&sessions)]);
    assert_eq!(all["policies"][0]["traces"].as_array().unwrap().len(), 5);
}

/// A conversation of seven calls, as requests and answers.
fn requests() -> Vec<(Value, Value)> {
    let mut messages = vec![
        json!({"role": "system", "content": "You help."}),
        json!({"role": "user", "content": "Find it."}),
    ];
    let mut requests = Vec::new();
    for round in 0..7 {
        let id = format!("call_{round}");
        let call =
            json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
        let answer = if round < 6 {
            json!({"role": "assistant", "content": null, "tool_calls": [call]})
        } else {
            json!({"role": "assistant", "content": "It was entry_0."})
        };
        // Instructions may contain a time.
        messages[0]["content"] = json!(format!("You help, at {round} o'clock."));
        requests.push((json!({"model": "m", "messages": messages}), answer.clone()));
        let result = format!("entry_{round} {}", "some words ".repeat(200));
        messages.extend([
            answer,
            json!({"role": "tool", "tool_call_id": id, "content": result}),
        ]);
    }
    requests
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

#[test]
fn requests_that_grow_are_one_conversation_whatever_wraps_them() {
    let requests = requests();
    let of = |record: fn(&Value, &Value) -> Value| -> Vec<Value> {
        requests
            .iter()
            .map(|(request, answer)| record(request, answer))
            .collect()
    };
    let both = of(|request, answer| json!({"request": request, "response": answer}));
    let texts = requests.iter().rev();
    let texts = texts.map(|(request, _)| json!({"body": request.to_string()}));
    let (last, end) = requests.last().unwrap();
    let mut whole = last["messages"].as_array().unwrap().clone();
    whole.push(end.clone());
    let logs = [
        ("bodies", lines(&of(|request, _| request.clone())), 0),
        ("both", lines(&both), 0),
        ("list", json!(both).to_string(), 0),
        ("latest first, as texts", lines(&texts.collect::<Vec<_>>()), 0),
        ("twice", lines(&[both.clone(), both.clone()].concat()), 0),
        ("observations", json!({"observations": of(|request, answer| json!({"input": request, "output": answer}))}).to_string(), 0),
        ("batch", lines(&[json!({"custom_id": "1", "url": "/v1/chat/completions", "body": last})]), 0),
        ("inputs", json!({"run_type": "llm", "trace_id": "t", "inputs": last, "outputs": end}).to_string(), 0),
        ("values", json!({"values": {"messages": whole}}).to_string(), 1),
    ];
    let folder = tempdir().unwrap();
    let file = folder.path().join("log.jsonl");
    let mut tokens = Vec::new();
    for (name, log, uses) in logs {
        std::fs::write(&file, log).unwrap();
        let json = replay(&[text(&file)]);
        let none = &json["policies"][0];
        assert_eq!(none["traces"].as_array().unwrap().len(), 1, "{name}");
        assert_eq!(
            (&none["model_calls"], &none["uses"]),
            (&json!(7), &json!(uses)),
            "{name}"
        );
        tokens.push(none["tokens"].as_u64().unwrap());
    }
    assert!(tokens.iter().all(|one| *one == tokens[0]), "{tokens:?}");
}

#[test]
fn conversations_that_diverge_are_two() {
    let requests = requests();
    let mut other = requests[2].0.clone();
    other["messages"][1]["content"] = json!("Find another.");
    let mut bodies: Vec<Value> = requests.into_iter().map(|(request, _)| request).collect();
    bodies.push(other);
    let folder = tempdir().unwrap();
    let file = folder.path().join("log.jsonl");
    std::fs::write(&file, lines(&bodies)).unwrap();
    let json = replay(&[text(&file)]);
    let calls: Vec<_> = json["policies"][0]["traces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trace| trace["model_calls"].as_u64().unwrap())
        .collect();
    assert_eq!(calls, [7, 2]);
}

/// The shape that other logs are to be converted to is read as the README shows it.
#[test]
fn an_unknown_log_is_answered_with_the_format_to_convert_to() {
    let folder = tempdir().unwrap();
    let log = folder.path().join("log.json");
    std::fs::write(&log, "{\"a\": 1}").unwrap();
    let ran = run(&["replay", text(&log)], "");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err.contains("Convert another log to a JSON list"),
        "{}",
        ran.err
    );

    let readme = include_str!("../../README.md");
    let (_, example) = readme.split_once("```json\n[\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    std::fs::write(&log, format!("[{example}")).unwrap();
    let out = succeed(&["replay", text(&log), "--policy", "eino"], "");
    let mut rows = out.lines().filter(|line| line.starts_with("eino "));
    let cells: Vec<&str> = rows.next_back().unwrap().split_whitespace().collect();
    assert_eq!(cells[5], "-", "no line was quoted: {out}");
}

/// Files without figures are listed with the reason, and the exit code is 3.
#[test]
fn a_file_without_a_tool_result_is_named() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let blind = path("blind.json");
    std::fs::write(
        &blind,
        json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
            .to_string(),
    )
    .unwrap();
    let called = path("called.json");
    let (last, _) = &requests()[1];
    let mut unanswered = last.clone();
    unanswered["messages"].as_array_mut().unwrap().truncate(3);
    std::fs::write(&called, unanswered.to_string()).unwrap();
    for alone in [&blind, &called] {
        let ran = run(&["replay", text(alone), "--policy", "eino"], "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(
            ran.err.contains("no tool result in a known format"),
            "{}",
            ran.err
        );
    }
    std::fs::write(path("good.json"), requests()[3].0.to_string()).unwrap();
    let ran = run(
        &["replay", text(folder.path()), "--policy", "eino", "--json"],
        "",
    );
    assert_eq!(ran.code, 3, "{}", ran.err);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["policies"][0]["traces"].as_array().unwrap().len(), 1);
    let skipped = json["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 2);
    for one in skipped {
        assert!(
            one["why"].as_str().unwrap().contains("no tool result"),
            "{one}"
        );
        assert!(
            ran.err.contains(one["name"].as_str().unwrap()),
            "{}",
            ran.err
        );
    }
}

#[test]
fn formats_that_are_not_read_are_refused_by_name() {
    let turns = |turns: Value| json!({"messages": turns}).to_string();
    let user = json!({"role": "user", "content": "go"});
    let formats = [
        ("ModelMessages", turns(json!([
            user,
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "f", "input": {}}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "1", "toolName": "f", "output": {"type": "text", "value": "x"}}]},
        ]))),
        ("UIMessages", turns(json!([
            {"id": "1", "role": "user", "parts": [{"type": "text", "text": "go"}]},
            {"id": "2", "role": "assistant", "parts": [{"type": "tool-f", "toolCallId": "1", "state": "output-available", "input": {}, "output": "x"}]},
        ]))),
        ("LangChain", json!({"values": {"messages": [{"type": "human", "content": "go"}, {"type": "ai", "content": ""}, {"type": "tool", "content": "x"}]}}).to_string()),
        ("LangChain", json!({"run_type": "llm", "trace_id": "t", "inputs": {"messages": [[{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "go"}}]]}}).to_string()),
        ("Bedrock", turns(json!([
            {"role": "user", "content": [{"text": "go"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "x"}]}}]},
        ]))),
    ];
    let folder = tempdir().unwrap();
    for (name, content) in formats {
        let file = folder.path().join("log.json");
        std::fs::write(&file, content).unwrap();
        let ran = run(&["replay", text(&file), "--policy", "eino"], "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{name}: {}", ran.err);
        assert!(
            ran.err.contains("it looks like") && ran.err.contains(name),
            "{name}: {}",
            ran.err
        );
        assert!(
            ran.err.contains("supported are chat completions"),
            "{name}: {}",
            ran.err
        );
    }
}

#[test]
fn logs_of_other_programs_are_refused_with_the_format_to_convert_to() {
    let logs = [
        json!({"run_type": "chain", "trace_id": "t", "inputs": {"question": "go"}}).to_string(),
        json!({"id": "t", "observations": [{"type": "SPAN", "input": "go"}]}).to_string(),
        lines(&[
            json!({"type": "session.start", "id": "1", "data": {"sessionId": "s"}}),
            json!({"type": "user.message", "id": "2", "data": {"content": "go"}}),
            json!({"type": "assistant.message", "id": "3", "data": {"content": "x", "toolRequests": []}}),
        ]),
        json!({"resourceSpans": []}).to_string(),
        json!([{"conversations": [{"from": "human", "value": "go"}, {"from": "gpt", "value": "x"}]}]).to_string(),
        lines(&[json!({"id": "b", "custom_id": "1", "response": {"body": {"choices": []}}})]),
        json!({"trajectory_format": "mini-swe-agent-1.1", "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "```bash\nls\n```"}, {"role": "user", "content": "a.py"}]}).to_string(),
    ];
    let folder = tempdir().unwrap();
    for log in logs {
        let file = folder.path().join("log.json");
        std::fs::write(&file, &log).unwrap();
        let ran = run(&["replay", text(&file), "--policy", "eino"], "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{log}: {}", ran.err);
        assert!(
            ran.err.contains("Convert another log to a JSON list"),
            "{log}: {}",
            ran.err
        );
    }
}
