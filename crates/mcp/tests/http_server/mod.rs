//! A server over HTTP on loopback that answers as a test says, and keeps what it has seen.
// Each test uses only a part of this module.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use futures_util::{StreamExt as _, stream};
use offcut_mcp::Remote;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A request that the server has seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The message; null if it is not JSON.
    pub(crate) fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The message's method, or HTTP's if there is no message.
    pub(crate) fn name(&self) -> String {
        let message = self.message();
        message["method"]
            .as_str()
            .unwrap_or(self.method.as_str())
            .to_owned()
    }
}

pub(crate) type Answer = Response<Body>;

/// A server that answers as a closure says, and keeps what it has seen.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, answer) = (seen.clone(), Arc::new(answer));
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let request = Seen {
                method,
                path: uri.to_string(),
                headers,
                body,
            };
            let response = answer(&request);
            all.lock().unwrap().push(request);
            async move { response }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = axum::Router::new()
            .fallback(handler)
            .layer(axum::extract::DefaultBodyLimit::disable());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.seen().iter().map(Seen::name).collect()
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote::new(&self.url).unwrap()
    }
}

pub(crate) fn json_answer(message: &Value) -> Answer {
    let head = Response::builder().header("content-type", "application/json; charset=utf-8");
    head.body(message.to_string().into()).unwrap()
}

pub(crate) fn result(of: &Seen, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": of.message()["id"], "result": result})
}

pub(crate) fn status(code: u16) -> Answer {
    let status = StatusCode::from_u16(code).unwrap();
    Response::builder()
        .status(status)
        .body(Body::empty())
        .unwrap()
}

/// A stream of events that ends, or breaks, after `text`.
pub(crate) fn events(text: &str, breaks: bool) -> Answer {
    let text = stream::iter([Ok(text.to_owned())]);
    let end = stream::once(async move {
        // The text is on its way before the connection breaks.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        if breaks {
            Err(std::io::Error::other("broken"))
        } else {
            Ok(String::new())
        }
    });
    let head = Response::builder().header("content-type", "text/event-stream");
    head.body(Body::from_stream(text.chain(end))).unwrap()
}

/// A stream of the events that come.
pub(crate) fn open_events() -> (mpsc::UnboundedSender<String>, Answer) {
    let (sender, texts) = mpsc::unbounded_channel();
    let stream = stream::unfold(
        texts,
        |mut texts: mpsc::UnboundedReceiver<String>| async move {
            let text = texts.recv().await?;
            Some((Ok::<_, std::io::Error>(text), texts))
        },
    );
    let head = Response::builder().header("content-type", "text/event-stream");
    (sender, head.body(Body::from_stream(stream)).unwrap())
}
