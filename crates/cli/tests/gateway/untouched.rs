//! Conversations that a provider took only as they came pass untouched, also after a restart.

use std::sync::Arc;

use crate::support::{Provider, Server, ok, reply};
use offcut::backend::{Backend, Fs};
use serde_json::json;

/// A request with one long result.
fn request(task: &str) -> String {
    let id = format!("call_{task}");
    let call =
        json!({"id": id, "type": "function", "function": {"name": "run", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": task},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": "a line of a result\n".repeat(1_000)},
    ]);
    let tools = json!([{"type": "function", "function": {"name": "run"}}]);
    json!({"model": "m", "messages": messages, "tools": tools}).to_string()
}

#[tokio::test]
async fn a_refused_conversation_passes_untouched_through_every_server_over_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::start(|seen| {
        let text = seen.text();
        if text.contains("refused") && text.contains("[offcut/1 ") {
            return reply("400 Bad Request", "application/json", "{}");
        }
        ok("{}")
    })
    .await;
    let start = async || {
        let store: Arc<dyn Backend> = Arc::new(Fs::open(folder.path()).unwrap());
        Server::reducing(&provider.url, &store, |serve| {
            serve.cut_without_reader = true;
        })
        .await
    };
    let post = async |server: &Server, task: &str| {
        let body = request(task);
        let answer = server.post("/v1/chat/completions", &[], &body).await;
        answer.header("x-offcut").unwrap().to_owned()
    };
    let first = start().await;
    let replica = start().await;
    assert_eq!(post(&first, "refused").await, "passed; reason=refused");
    assert_eq!(provider.seen().len(), 2);
    for server in [&first, &replica, &start().await] {
        assert_eq!(post(server, "refused").await, "passed; reason=untouched");
        assert_eq!(provider.last().text(), request("refused"));
        assert_eq!(post(server, "taken").await, "reduced");
    }
    assert_eq!(provider.seen().len(), 8, "nothing was tried again");
}
