//! Pages of the store that an agent's own tools have read: they pass whole, and are not cut again.

use std::sync::Arc;

use crate::support::{Provider, Server, ok};
use offcut::backend::{Backend, Fs};
use offcut::format::WireFormat;
use offcut::hint::Hint;
use serde_json::{Value, json};

/// A call of a tool, and its result.
struct Ran<'a> {
    tool: &'a str,
    arguments: Value,
    result: String,
}

/// The path for a request and its body, with one call after the other.
fn request(format: WireFormat, ran: &[Ran<'_>]) -> (&'static str, String) {
    let tools = json!([
        {"type": "function", "name": "Bash", "function": {"name": "Bash"}, "functionDeclarations": [{"name": "Bash"}]},
        {"type": "function", "name": "Read", "function": {"name": "Read"}, "functionDeclarations": [{"name": "Read"}]},
    ]);
    let mut messages = vec![match format {
        WireFormat::Gemini => json!({"role": "user", "parts": [{"text": "a task"}]}),
        _ => json!({"role": "user", "content": "a task"}),
    }];
    for (nth, ran) in ran.iter().enumerate() {
        let (id, name, input) = (format!("call_{nth}"), ran.tool, &ran.arguments);
        let (arguments, result) = (input.to_string(), &ran.result);
        messages.extend(match format {
            WireFormat::OpenAiChat => [
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}),
                json!({"role": "tool", "tool_call_id": id, "content": result}),
            ],
            WireFormat::Responses => [
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}),
                json!({"type": "function_call_output", "call_id": id, "output": result}),
            ],
            WireFormat::Anthropic => [
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]}),
            ],
            _ => [
                json!({"role": "model", "parts": [{"functionCall": {"id": id, "name": name, "args": input}}]}),
                json!({"role": "user", "parts": [{"functionResponse": {"id": id, "name": name, "response": {"output": result}}}]}),
            ],
        });
    }
    match format {
        WireFormat::OpenAiChat => (
            "/v1/chat/completions",
            json!({"model": "m", "messages": messages, "tools": tools}).to_string(),
        ),
        WireFormat::Responses => (
            "/v1/responses",
            json!({"model": "m", "input": messages, "tools": tools}).to_string(),
        ),
        WireFormat::Anthropic => (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 9, "messages": messages, "tools": tools})
                .to_string(),
        ),
        _ => (
            "/v1beta/models/m:generateContent",
            json!({"contents": messages, "tools": tools}).to_string(),
        ),
    }
}

/// All texts in a body that are hints, or are long.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() > 900 || text.starts_with("[offcut/1 ") => {
            found.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        _ => {}
    }
}

fn sent(provider: &Provider) -> Vec<String> {
    let mut found = Vec::new();
    texts(
        &serde_json::from_str(provider.last().text()).unwrap(),
        &mut found,
    );
    found
}

#[tokio::test]
async fn pages_of_the_store_pass_whole_and_all_else_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Backend> = Arc::new(Fs::open(folder.path()).unwrap());
    let provider = Provider::start(|_| ok("{}")).await;
    let mut settings = crate::support::reduction();
    settings.backend_url = Some(folder.path().to_str().unwrap().to_owned().into());
    let start = || Server::with(crate::support::settings(&provider.url), &settings, &store);
    let server = start().await;
    let line = |n: usize| format!("{n} {}\n", "a long line of a file ".repeat(40));
    let result: String = (0..40).map(line).collect();
    for format in WireFormat::ALL {
        let mut ran = vec![Ran {
            tool: "Bash",
            arguments: json!({"command": "make"}),
            result: format!("{}\n{result}", format.name()),
        }];
        let (path, body) = request(format, &ran);
        server.post(path, &[], &body).await;
        let hint = sent(&provider).remove(0);
        let location = Hint::parse(&hint).unwrap().location.unwrap();
        let location = location.as_str();
        // The tool of the agent shows some lines with their numbers, and a shell some without.
        let page: String = (1..9).map(|n| format!("{n}\t{}", line(n))).collect();
        let shell = line(7) + &line(8) + &line(9);
        ran.push(Ran {
            tool: "Read",
            arguments: json!({"file_path": location, "offset": 2, "limit": 8}),
            result: page.clone(),
        });
        ran.push(Ran {
            tool: "Bash",
            arguments: json!({"command": format!("sed -n 9,11p '{location}'"), "timeout": 9}),
            result: shell.clone(),
        });
        // A model that names the store in another call only keeps that result whole.
        let other: String = (50..90).map(line).collect();
        ran.push(Ran {
            tool: "Bash",
            arguments: json!({"command": format!("make # {location}")}),
            result: other.clone(),
        });
        let near = format!("{}-old/notes", folder.path().display());
        ran.push(Ran {
            tool: "Read",
            arguments: json!({"file_path": near}),
            result: format!("{other}{page}"),
        });
        let (path, body) = request(format, &ran);
        let answer = server.post(path, &[], &body).await;
        assert_eq!(answer.header("x-offcut"), Some("reduced"), "{format}");
        let shown = sent(&provider);
        let first = provider.last().body;
        assert_eq!(shown[..4], [hint, page, shell, other], "{format}");
        assert!(Hint::parse(&shown[4]).is_some(), "{format}: {}", shown[4]);
        // Another process decides the same.
        start().await.post(path, &[], &body).await;
        assert_eq!(provider.last().body, first, "{format}");
    }
}

#[tokio::test]
async fn a_copy_of_another_conversations_hint_is_stored_like_any_text() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Backend> = Arc::new(Fs::open(folder.path()).unwrap());
    let provider = Provider::start(|_| ok("{}")).await;
    let mut settings = crate::support::reduction();
    settings.backend_url = Some(folder.path().to_str().unwrap().to_owned().into());
    (
        settings.max_tokens_for_clear,
        settings.clear_at_least_tokens,
    ) = (2_000, 0);
    let server = Server::with(crate::support::settings(&provider.url), &settings, &store).await;
    let ran = |command: &str, result: &str| Ran {
        tool: "Bash",
        arguments: json!({"command": command}),
        result: result.to_owned(),
    };
    let long: String = (0..1_000)
        .map(|n| format!("error {n} at /src/file_{n}.rs\n"))
        .collect();
    let (path, body) = request(WireFormat::OpenAiChat, &[ran("make", &long)]);
    server.post(path, &[], &body).await;
    let hint = sent(&provider).remove(0);

    let mut all = vec![ran("cat notes", &hint)];
    all.extend((0..8).map(|nth| ran(&format!("step {nth}"), &"a line\n".repeat(400))));
    let (path, body) = request(WireFormat::OpenAiChat, &all);
    server.post(path, &[], &body).await;
    let shown = sent(&provider).remove(0);
    let location = Hint::parse(&shown).unwrap().location.unwrap();
    let stored = std::fs::read_to_string(location.as_str()).unwrap();
    assert!(shown.len() < hint.len() && stored == hint, "{shown}");
}
