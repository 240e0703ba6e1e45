//! Events as Codex 0.169 sends them, answered over a real store.

use crate::support::{User, lines, read_back};
use offcut_cli::agents::Agent;
use serde_json::{Value, json};

fn event(tool: &str, input: Value, response: Value) -> Value {
    json!({
        "session_id": "s1", "turn_id": "t1", "transcript_path": "/home/u/.codex/sessions/2026/11/23/rollout-s1.jsonl",
        "cwd": "/src", "hook_event_name": "PostToolUse", "model": "gpt-5.5", "permission_mode": "default",
        "tool_name": tool, "tool_input": input, "tool_response": response, "tool_use_id": "call_1",
    })
}

fn of_server(content: Value) -> Value {
    json!({"content": content, "isError": false})
}

/// The text that the model is shown instead of the result.
async fn reason(user: &User, event: &Value) -> Option<String> {
    let answer = user.answer(Agent::Codex, event).await?;
    assert_eq!(answer["decision"], "block");
    assert_eq!(answer.as_object().unwrap().len(), 2);
    Some(answer["reason"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "current_thread")]
async fn a_long_result_of_a_server_is_stored_as_the_client_shows_it() {
    let long = lines(3_000);
    let structured = json!({"b": 1, "a": [long]});
    let two = json!({"stderr": long, "stdout": long});
    let cases = [
        (
            of_server(json!([{"type": "text", "text": long}])),
            long.clone(),
        ),
        (
            of_server(json!([{"type": "text", "text": long}, {"type": "text", "text": "end"}])),
            format!("{long}\nend"),
        ),
        (
            json!({"content": [{"type": "text", "text": "short"}], "structuredContent": structured}),
            structured.to_string(),
        ),
        (json!(long), long.clone()),
        // Resources that are texts count as such, and links are small.
        (
            of_server(json!([
                {"type": "text", "text": "head"},
                {"type": "resource", "resource": {"uri": "file:///x", "text": long}},
                {"type": "resource", "resource": {"uri": "file:///y", "text": "short"}},
                {"type": "resource_link", "uri": "file:///z", "name": "z"},
            ])),
            format!(
                "head\n{}\n{long}\n{}\n{}",
                r#"{"uri":"file:///x","text":"…"}"#,
                r#"{"type":"resource","resource":{"uri":"file:///y","text":"short"}}"#,
                r#"{"type":"resource_link","uri":"file:///z","name":"z"}"#
            ),
        ),
        // One long text is shown with its lines, and the small fields above it.
        (
            json!({"content": [{"type": "text", "text": long}], "structuredContent": {"content": long}}),
            long.clone(),
        ),
        (
            json!({"content": [], "structuredContent": {"code": 0, "stdout": long}}),
            format!("{{\"code\":0,\"stdout\":\"…\"}}\n{long}"),
        ),
        (
            json!({"content": [], "structuredContent": two}),
            two.to_string(),
        ),
    ];
    for (response, expected) in cases {
        let user = User::new();
        let shown = reason(&user, &event("mcp__db__rows", json!({}), response)).await;
        let shown = shown.unwrap();
        assert_eq!(read_back(&shown), expected);
        assert!(shown.contains("/s1/trunc/call_1\""), "{shown:.200}");
        assert!(shown.len() < 10_000, "the client would cut it");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn results_that_cant_be_replaced_stay() {
    let user = User::new();
    let text = json!([{"type": "text", "text": lines(3_000)}]);
    let mut from_program = event("mcp__db__rows", json!({}), of_server(text.clone()));
    from_program["tool_use_id"] = "exec-124c3036-814d-4310-a860-e6a3d6d5e493".into();
    let mut before = event("mcp__db__rows", json!({}), of_server(text.clone()));
    before["hook_event_name"] = "PreToolUse".into();
    let picture =
        json!([{"type": "text", "text": lines(3_000)}, {"type": "image", "data": "AAAA"}]);
    let blob = json!([
        {"type": "text", "text": lines(3_000)},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}},
    ]);
    let cases = [
        from_program,
        before,
        event("mcp__db__rows", json!({}), of_server(picture)),
        event("mcp__db__rows", json!({}), of_server(blob)),
        event(
            "mcp__db__rows",
            json!({}),
            of_server(json!([{"type": "text", "text": "short"}])),
        ),
        event(
            "mcp__db__rows",
            json!({}),
            json!({"content": text, "isError": true}),
        ),
        event("mcp__db__rows", json!({}), json!(null)),
        event("mcp__db__rows", json!({}), json!([])),
        event("Bash", json!({"command": "make"}), json!(lines(3_000))),
        event(
            "apply_patch",
            json!({"command": "*** Begin Patch"}),
            of_server(text),
        ),
    ];
    for event in cases {
        assert_eq!(
            user.answer(Agent::Codex, &event).await,
            None,
            "{event:.300}"
        );
    }
    assert!(!user.store().join("s1").exists());
}

#[tokio::test(flavor = "current_thread")]
async fn content_of_the_store_is_never_truncated_again() {
    let user = User::new();
    let text = of_server(json!([{"type": "text", "text": lines(3_000)}]));
    let first = event("mcp__db__rows", json!({}), text.clone());
    reason(&user, &first).await.unwrap();
    let stored = user.store().join("s1/trunc/call_1");
    let read = event("mcp__fs__read", json!({"path": stored}), text.clone());
    assert_eq!(user.answer(Agent::Codex, &read).await, None);
    let elsewhere = event("mcp__fs__read", json!({"path": "/src/a"}), text);
    assert!(reason(&user, &elsewhere).await.is_some());
}

#[tokio::test(flavor = "current_thread")]
async fn the_gain_is_measured_against_what_the_client_would_show() {
    let user = User::new();
    let text = of_server(json!([{"type": "text", "text": lines(3_000)}]));
    let rows = user
        .rows(Agent::Codex, &event("mcp__db__rows", json!({}), text))
        .await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].before, 10_000);
    assert!(rows[0].after < 10_000);
}

#[tokio::test(flavor = "current_thread")]
async fn a_subagent_has_a_place_of_its_own() {
    let user = User::new();
    let text = of_server(json!([{"type": "text", "text": lines(3_000)}]));
    let mut event = event("mcp__db__rows", json!({}), text);
    event["agent_id"] = "a7".into();
    let shown = reason(&user, &event).await.unwrap();
    assert!(shown.contains("/s1-a7/trunc/call_1\""), "{shown:.200}");
}
