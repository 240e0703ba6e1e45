//! Asks a running server for the figures of its page.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::gateway::page;

/// Time for a server to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer: a server holds at most 1,000 conversations.
const LONGEST: usize = 16 * 1024 * 1024;

/// Asks the server with the page at `address`, such as `http://127.0.0.1:8787/page#TOKEN`, for its
/// figures: the JSON of `/page/figures`, which `docs/serve.md` describes.
///
/// # Errors
///
/// `ConnectionRefused` if no server listens there; `PermissionDenied` if the token is not the
/// server's; `TimedOut` if it does not answer within five seconds; `InvalidInput` and `InvalidData`
/// if the address or the answer is not what it should be.
pub async fn figures(address: &str) -> io::Result<Value> {
    let asked = tokio::time::timeout(PATIENCE, ask(address)).await;
    asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn ask(address: &str) -> io::Result<Value> {
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "the address must be the one that the server printed at its start, such as http://127.0.0.1:8787/page#TOKEN",
        )
    };
    let (url, token) = address.split_once('#').ok_or_else(wrong)?;
    let url: Uri = url.parse().map_err(|_| wrong())?;
    let authority = url.authority().ok_or_else(wrong)?;
    if url.scheme_str() != Some("http") || url.path() != page::PATH {
        return Err(wrong());
    }
    let bearer = format!("Bearer {token}");
    let request = Request::get(format!("{}/figures?since=0", page::PATH))
        // The page is for this machine, by whatever address it was reached.
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, bearer)
        .body(Empty::<Bytes>::new());
    let request = request.map_err(|_| wrong())?;
    let host = authority.host().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(invalid)?;
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(invalid)?;
    match answer.status() {
        StatusCode::OK => {
            let body = Limited::new(answer.into_body(), LONGEST).collect().await;
            let figures = serde_json::from_slice(&body.map_err(invalid)?.to_bytes());
            let figures: Value = figures.map_err(invalid)?;
            if !figures["conversations"].is_array() {
                return Err(invalid("whoever answers there is not a server of Offcut"));
            }
            Ok(figures)
        }
        StatusCode::UNAUTHORIZED => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the token is not this server's: it is new at each start",
        )),
        other => Err(invalid(format!("the server answered with status {other}"))),
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
