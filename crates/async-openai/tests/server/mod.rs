//! A scripted model server on loopback, with real HTTP and real event streams.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The server's answer to one request.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "no test file needs all of them")]
pub enum Reply {
    Json(u16, Value),
    Text(u16, &'static str),
    /// Events, cut into chunks of this many bytes, regardless of where events end.
    Events(Vec<Value>, usize),
    /// Events, then a cut connection.
    Cut(Vec<Value>),
}

pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Answers the nth request with the nth of `replies`; after the last, repeats the last.
    pub async fn start(replies: Vec<Reply>) -> Self {
        Self::answering(move |nth, _| replies[nth.min(replies.len() - 1)].clone()).await
    }

    pub async fn answering(
        answer: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        tokio::spawn(async move {
            loop {
                let Ok((connection, _)) = listener.accept().await else {
                    break;
                };
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                let serve = service_fn(move |request: Request<Incoming>| {
                    let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                    async move {
                        assert_eq!(request.headers()["authorization"], "Bearer sk-secret");
                        let path = request.uri().path().to_owned();
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        let body: Value = serde_json::from_slice(&body).unwrap();
                        let nth = {
                            let mut seen = seen.lock().unwrap();
                            seen.push(body.clone());
                            seen.len() - 1
                        };
                        let is_known =
                            ["/v1/chat/completions", "/v1/responses"].contains(&path.as_str());
                        let reply = if is_known {
                            answer(nth, &body)
                        } else {
                            Reply::Text(404, "no such path")
                        };
                        Ok::<_, Infallible>(respond(reply))
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(connection), serve),
                );
            }
        });
        Self { url, requests }
    }

    /// The bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn respond(reply: Reply) -> Response<BoxBody<Bytes, io::Error>> {
    let whole = |bytes: Vec<u8>| {
        Full::new(Bytes::from(bytes))
            .map_err(|never| match never {})
            .boxed()
    };
    let (status, kind, body) = match reply {
        Reply::Json(status, json) => (
            status,
            "application/json",
            whole(json.to_string().into_bytes()),
        ),
        Reply::Text(status, text) => (status, "text/html", whole(text.into())),
        Reply::Events(events, size) => {
            let mut text: String = events
                .iter()
                .map(|event| format!("data: {event}\n\n"))
                .collect();
            text.push_str(": a comment\n\ndata: [DONE]\n\n");
            let pieces: Vec<_> = text
                .into_bytes()
                .chunks(size)
                .map(|piece| Ok(frame(piece)))
                .collect();
            (
                200,
                "text/event-stream",
                BodyExt::boxed(StreamBody::new(stream::iter(pieces))),
            )
        }
        Reply::Cut(events) => {
            let text: String = events
                .iter()
                .map(|event| format!("data: {event}\n\n"))
                .collect();
            let cut = stream::once(async {
                // Lets the first piece be sent before the connection is cut.
                tokio::task::yield_now().await;
                Err(io::Error::other("cut"))
            });
            let pieces = stream::iter([Ok(frame(text.as_bytes()))]).chain(cut);
            (
                200,
                "text/event-stream",
                BodyExt::boxed(StreamBody::new(pieces)),
            )
        }
    };
    // `retry-after: 0` lets clients retry at once.
    Response::builder()
        .status(status)
        .header("content-type", kind)
        .header("retry-after", "0")
        .body(body)
        .unwrap()
}

fn frame(bytes: &[u8]) -> Frame<Bytes> {
    Frame::data(Bytes::copy_from_slice(bytes))
}

/// A complete answer, without streaming.
pub fn completion(message: &Value, prompt_tokens: u64) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": null}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 1, "total_tokens": prompt_tokens + 1},
    })
}

/// The same answer as a stream: its text and its tool calls in pieces, then the usage.
pub fn chunks(message: &Value, prompt_tokens: u64) -> Vec<Value> {
    let chunk = |delta: Value| json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let mut all = vec![chunk(json!({"role": "assistant", "content": ""}))];
    for character in message["content"].as_str().unwrap_or_default().chars() {
        all.push(chunk(json!({"content": character.to_string()})));
    }
    for (index, call) in message["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let (name, arguments) = (
            &call["function"]["name"],
            call["function"]["arguments"].as_str().unwrap(),
        );
        all.push(chunk(json!({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}]})));
        for piece in arguments.as_bytes().chunks(3) {
            let piece = std::str::from_utf8(piece).unwrap();
            all.push(chunk(
                json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
            ));
        }
    }
    let mut last = chunk(json!({}));
    last["choices"][0]["finish_reason"] = json!("stop");
    let usage = json!({"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 1, "total_tokens": prompt_tokens + 1}});
    all.extend([last, usage]);
    all
}
