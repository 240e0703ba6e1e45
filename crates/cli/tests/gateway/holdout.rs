//! A share of conversations passes as it comes, and the provider's usage counts for its group.

use crate::support::{Provider, Server, memory, ok};
use offcut_cli::gateway::ServeSettings;
use serde_json::json;

const USAGE: &str =
    r#"{"usage": {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 40}}}"#;

/// A request of a conversation with one call, or with none yet.
fn request(call: Option<&str>) -> String {
    let mut messages = vec![json!({"role": "user", "content": "a task"})];
    if let Some(id) = call {
        let long: String = (0..2_000).map(|n| format!("line {n}\n")).collect();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "run", "arguments": "{}"}}
        ]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": long}));
    }
    let tools = json!([{"type": "function", "function": {"name": "run"}}]);
    json!({"model": "m", "messages": messages, "tools": tools}).to_string()
}

fn holds_out(settings: &mut ServeSettings, share: f64) {
    settings.cut_without_reader = true;
    settings.holdout = share;
}

/// Returns the outcome of one request for each of 40 conversations.
async fn outcomes(server: &Server) -> Vec<String> {
    let mut outcomes = Vec::new();
    for n in 0..40 {
        let id = format!("call_of_conversation_{n}");
        let body = request(Some(&id));
        let answer = server.post("/v1/chat/completions", &[], &body).await;
        outcomes.push(answer.header("x-offcut").unwrap().to_owned());
    }
    outcomes
}

fn figure(metrics: &str, line: &str) -> u64 {
    let found = metrics.lines().find_map(|found| found.strip_prefix(line));
    found.map_or(0, |number| number.trim().parse().unwrap())
}

#[tokio::test]
async fn replicas_leave_the_same_conversations_alone_and_count_both_groups() {
    let provider = Provider::start(|_| ok(USAGE)).await;
    let store = memory();
    let replica = || Server::reducing(&provider.url, &store, |settings| holds_out(settings, 0.5));
    let (one, other) = (replica().await, replica().await);

    let first = one.post("/v1/chat/completions", &[], &request(None)).await;
    assert_eq!(first.header("x-offcut"), Some("unchanged"));
    let decided = outcomes(&one).await;
    assert_eq!(outcomes(&other).await, decided);
    let count = |outcome: &str| decided.iter().filter(|found| *found == outcome).count() as u64;
    let (reduced, held_out) = (count("reduced"), count("passed; reason=held-out"));
    assert_eq!(reduced + held_out, 40, "{decided:?}");
    assert!(reduced > 9 && held_out > 9, "{decided:?}");

    let metrics = one.get("/metrics").await;
    let tokens = |labels: &str| {
        let line = format!("offcut_provider_tokens_total{{upstream=\"openai\",{labels}}}");
        figure(metrics.text(), &line)
    };
    assert_eq!(tokens("kind=\"cached\",group=\"reduced\""), 40 * reduced);
    assert_eq!(tokens("kind=\"fresh\",group=\"held-out\""), 60 * held_out);
    assert_eq!(tokens("kind=\"fresh\""), 60, "before the first call");
}

#[tokio::test]
async fn what_is_held_out_passes_byte_for_byte() {
    let provider = Provider::start(|_| ok(USAGE)).await;
    let all = |settings: &mut ServeSettings| holds_out(settings, 1.0);
    let server = Server::reducing(&provider.url, &memory(), all).await;
    let body = request(Some("call_1"));
    let answer = server.post("/v1/chat/completions", &[], &body).await;
    assert_eq!(answer.header("x-offcut"), Some("passed; reason=held-out"));
    assert_eq!(provider.last().text(), body);
}

#[tokio::test]
async fn without_a_share_there_are_no_groups() {
    let provider = Provider::start(|_| ok(USAGE)).await;
    let none = |settings: &mut ServeSettings| holds_out(settings, 0.0);
    let server = Server::reducing(&provider.url, &memory(), none).await;
    assert_eq!(outcomes(&server).await, vec!["reduced"; 40]);
    let metrics = server.get("/metrics").await;
    assert!(!metrics.text().contains("group="), "{}", metrics.text());
}
