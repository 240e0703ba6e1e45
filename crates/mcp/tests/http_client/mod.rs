//! A client over HTTP that knows nothing of MCP but its streams of events.
// Each test uses only a part of this module.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use offcut_mcp::McpEndpoint;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

pub(crate) const SESSION: &str = "mcp-session-id";

/// Serves an endpoint on loopback. Returns a client of it.
pub(crate) async fn listen(endpoint: McpEndpoint) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(endpoint.serve(listener, std::future::pending()));
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Client {
        address,
        headers: headers.into(),
        path: "/mcp".to_owned(),
    }
}

/// A client, which has a connection for each request.
pub(crate) struct Client {
    address: SocketAddr,
    headers: BTreeMap<String, String>,
    /// The endpoint's path, and a query.
    pub(crate) path: String,
}

impl Client {
    /// Another client of the same endpoint, with the same headers.
    pub(crate) fn like(&self) -> Self {
        Self {
            address: self.address,
            headers: self.headers.clone(),
            path: self.path.clone(),
        }
    }

    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.headers.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.headers.remove(name);
    }

    pub(crate) fn get_header(&self, name: &str) -> Option<String> {
        self.headers.get(name).cloned()
    }

    pub(crate) async fn post(&self, message: &Value) -> Answer {
        self.send("POST", &self.path, &message.to_string()).await
    }

    pub(crate) async fn delete(&self) -> Answer {
        self.send("DELETE", &self.path, "").await
    }

    /// Listens, or takes up a stream after an event.
    pub(crate) async fn get(&self, after: Option<&str>) -> Answer {
        let mut client = self.like();
        if let Some(id) = after {
            client.set("last-event-id", id);
        }
        client.send("GET", &self.path, "").await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &str) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut request = http::Request::builder().method(method).uri(path);
        if !self.headers.contains_key("host") {
            request = request.header("host", self.authority());
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(body.to_owned()).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            body: answer.into_body(),
            text: Vec::new(),
        }
    }
}

/// An answer whose body is read as it is wanted.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    body: Incoming,
    text: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The whole body.
    pub(crate) async fn body(mut self) -> String {
        while self.more().await {}
        String::from_utf8(self.text).unwrap()
    }

    /// The first piece of the body.
    pub(crate) async fn chunk(mut self) -> String {
        self.more().await;
        String::from_utf8_lossy(&self.text).into_owned()
    }

    async fn more(&mut self) -> bool {
        let Some(frame) = self.body.frame().await else {
            return false;
        };
        self.text.extend(frame.unwrap().into_data().unwrap());
        true
    }

    /// The next event, its id and its message; `None` at the end.
    pub(crate) async fn event(&mut self) -> Option<(String, Option<Value>)> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        loop {
            if let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.text.drain(..end + 2).collect();
                let event = String::from_utf8(event).unwrap();
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let message = field("data: ").filter(|data| !data.is_empty());
                let message = message.map(|data| serde_json::from_str(data).unwrap());
                return Some((field("id: ").unwrap_or_default().to_owned(), message));
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// The next message of a stream, or the only one of a body; `None` at the end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        if self.header("content-type") != Some("text/event-stream") {
            while self.more().await {}
            return serde_json::from_slice(&std::mem::take(&mut self.text)).ok();
        }
        loop {
            if let (_, Some(message)) = self.event().await? {
                return Some(message);
            }
        }
    }
}
