//! A server for chat completions on loopback, streaming included, which rejects invalid messages as
//! a provider would.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use offcut::format::WireFormat;
use rig::DynModel;
use rig::operation::Completion;
use rig::providers::openai::{OpenAIConfig, Route};
use serde_json::{Value, json};

/// The model's reply.
pub(crate) enum Reply {
    Answer(&'static str),
    /// Ids, names and arguments.
    Calls(Vec<(String, &'static str, Value)>),
}

/// The server and its requests.
pub(crate) struct ModelServer {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl ModelServer {
    pub(crate) async fn start(script: impl Fn(&[Value]) -> Reply + Send + Sync + 'static) -> Self {
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let (seen, script) = (Arc::clone(&requests), Arc::new(script));
        let answer = move |body: Bytes| {
            let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
            async move {
                let request: Value = serde_json::from_slice(&body).unwrap();
                let response = respond(&request, &*script);
                seen.lock().unwrap().push(request);
                response
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        Self { url, requests }
    }

    pub(crate) fn model(&self) -> DynModel<Completion> {
        OpenAIConfig::new("key")
            .with_base_url(&self.url)
            .with_route(Route::Chat)
            .client()
            .completion("model")
            .into()
    }

    /// Takes the requests since the last call.
    pub(crate) fn requests(&self) -> Vec<Value> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

/// The tokens of a request's messages and tools: their size in bytes divided by four.
pub(crate) fn prompt_tokens(request: &Value) -> u64 {
    (request["messages"].to_string().len() + request["tools"].to_string().len()) as u64 / 4
}

fn respond(request: &Value, script: &dyn Fn(&[Value]) -> Reply) -> Response {
    let messages = request["messages"].as_array().unwrap();
    if let Err(why) = accepts(messages) {
        let error = json!({"error": {"message": why, "type": "invalid_request_error"}});
        return (StatusCode::BAD_REQUEST, error.to_string()).into_response();
    }
    let reply = script(messages);
    let tokens = prompt_tokens(request);
    let usage =
        json!({"prompt_tokens": tokens, "completion_tokens": 10, "total_tokens": tokens + 10});
    if request["stream"] == true {
        streamed(&reply, &usage)
    } else {
        whole(&reply, &usage)
    }
}

fn whole(reply: &Reply, usage: &Value) -> Response {
    let (message, reason) = match reply {
        Reply::Answer(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Reply::Calls(calls) => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|(id, name, arguments)| {
                    let function = json!({"name": name, "arguments": arguments.to_string()});
                    json!({"id": id, "type": "function", "function": function})
                })
                .collect();
            (
                json!({"role": "assistant", "content": null, "tool_calls": calls}),
                "tool_calls",
            )
        }
    };
    let choice = json!({"index": 0, "message": message, "finish_reason": reason});
    let body = json!({"id": "r", "object": "chat.completion", "created": 1, "model": "model", "choices": [choice], "usage": usage});
    (
        [(header::CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
        .into_response()
}

/// Encodes the reply as server-sent events, cut into pieces of 50 bytes.
fn streamed(reply: &Reply, usage: &Value) -> Response {
    let chunk = |delta: Value, reason: Value| {
        json!({"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let mut events = vec![chunk(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    let reason = match reply {
        Reply::Answer(text) => {
            let (one, two) = text.split_at(text.len() / 2);
            events.extend([one, two].map(|text| chunk(json!({"content": text}), Value::Null)));
            "stop"
        }
        Reply::Calls(calls) => {
            for (index, (id, name, arguments)) in calls.iter().enumerate() {
                let function = json!({"name": name, "arguments": ""});
                let call =
                    json!({"index": index, "id": id, "type": "function", "function": function});
                events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
                let arguments = arguments.to_string();
                let (one, two) = arguments.split_at(arguments.len() / 2);
                events.extend([one, two].map(|arguments| {
                    let call = json!({"index": index, "function": {"arguments": arguments}});
                    chunk(json!({"tool_calls": [call]}), Value::Null)
                }));
            }
            "tool_calls"
        }
    };
    events.push(chunk(json!({}), json!(reason)));
    events.push(json!({"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "model", "choices": [], "usage": usage}));
    let text: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let bytes = Bytes::from(text + "data: [DONE]\n\n");
    let pieces: Vec<_> = (0..bytes.len())
        .step_by(50)
        .map(|from| Ok::<_, std::io::Error>(bytes.slice(from..bytes.len().min(from + 50))))
        .collect();
    (
        [(header::CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(stream::iter(pieces)),
    )
        .into_response()
}

/// Checks that a provider would accept `messages`, whose last one must request something.
fn accepts(messages: &[Value]) -> Result<(), String> {
    offcut_testkit::validate(WireFormat::OpenAiChat, messages)
        .map_err(|invalid| invalid.to_string())?;
    match messages.last().and_then(|message| message["role"].as_str()) {
        Some("user" | "tool") => Ok(()),
        _ => Err("nothing is asked".into()),
    }
}
