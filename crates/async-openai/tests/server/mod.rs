//! A scripted model server on loopback, with real HTTP.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
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

fn respond(reply: Reply) -> Response<Full<Bytes>> {
    let (status, kind, body) = match reply {
        Reply::Json(status, json) => (status, "application/json", json.to_string()),
        Reply::Text(status, text) => (status, "text/html", text.to_owned()),
    };
    // `retry-after: 0` lets clients retry at once.
    Response::builder()
        .status(status)
        .header("content-type", kind)
        .header("retry-after", "0")
        .body(Full::new(Bytes::from(body)))
        .unwrap()
}

/// A complete answer.
pub fn completion(message: &Value, prompt_tokens: u64) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": null}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 1, "total_tokens": prompt_tokens + 1},
    })
}
