//! A client with one connection that it keeps.

use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::provider::EVENTS;

pub(crate) struct Client(SendRequest<Full<Bytes>>);

/// A reply, with the times of its pieces.
pub(crate) struct Answer {
    /// The outcome that `offcut serve` names.
    pub(crate) outcome: String,
    pub(crate) body: Vec<u8>,
    /// Each piece: its place in the body, and when it came.
    pub(crate) pieces: Vec<(usize, Instant)>,
    pub(crate) end: Instant,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (send, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(send)
    }

    /// Sends a request for the next turn. `events` is the number of events that are to come back and the milliseconds
    /// between two.
    pub(crate) async fn post(&mut self, body: Bytes, events: Option<[u64; 2]>) -> Answer {
        let request = Request::post("/v1/chat/completions")
            .header("host", "localhost")
            .header("content-type", "application/json");
        let request = match events {
            Some([count, pause]) => request.header(EVENTS, format!("{count} {pause}")),
            None => request,
        };
        let request = request.body(Full::new(body)).unwrap();
        self.0.ready().await.unwrap();
        let mut reply = self.0.send_request(request).await.unwrap();
        assert_eq!(reply.status(), 200);
        let outcome = reply.headers().get("x-offcut");
        let outcome = outcome.map_or_else(String::new, |value| value.to_str().unwrap().to_owned());
        let (mut body, mut pieces) = (Vec::new(), Vec::new());
        while let Some(frame) = reply.frame().await {
            let frame = frame.expect("a whole reply");
            if let Some(data) = frame.data_ref() {
                pieces.push((body.len(), Instant::now()));
                body.extend_from_slice(data);
            }
        }
        Answer {
            outcome,
            body,
            pieces,
            end: Instant::now(),
        }
    }
}
