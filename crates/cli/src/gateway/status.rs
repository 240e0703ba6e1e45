//! Asks a running server for the figures of its page.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::gateway::body::BoxError;
use crate::gateway::page;

/// Time for a server to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer: a server holds at most 1,000 conversations.
const LONGEST: usize = 16 * 1024 * 1024;

const WRONG: &str = "the address must be the one that the server printed at its start, such as http://127.0.0.1:8787/page#TOKEN";

/// Asks the server with the page at `address`, such as `http://127.0.0.1:8787/page#TOKEN`, for its
/// figures: the JSON of `/page/figures`, which `docs/serve.md` describes.
///
/// # Errors
///
/// No server listens there, the token is not its own, it does not answer within five seconds, or the address or the
/// answer is not what it should be.
pub async fn figures(address: &str) -> Result<Value, BoxError> {
    let asked = tokio::time::timeout(PATIENCE, ask(address)).await;
    asked.unwrap_or_else(|_| Err("timed out".into()))
}

async fn ask(address: &str) -> Result<Value, BoxError> {
    let (url, token) = address.split_once('#').ok_or(WRONG)?;
    let url: Uri = url.parse().map_err(|_| WRONG)?;
    let authority = url.authority().ok_or(WRONG)?;
    if url.scheme_str() != Some("http") || url.path() != page::PATH {
        return Err(WRONG.into());
    }
    let bearer = format!("Bearer {token}");
    let request = Request::get(format!("{}/figures?since=0", page::PATH))
        // The page is for this machine, by whatever address it was reached.
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, bearer)
        .body(Empty::<Bytes>::new());
    let request = request.map_err(|_| WRONG)?;
    let host = authority.host().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let answer = sender.send_request(request).await?;
    match answer.status() {
        StatusCode::OK => {
            let body = Limited::new(answer.into_body(), LONGEST).collect().await?;
            let figures: Value = serde_json::from_slice(&body.to_bytes())?;
            if !figures["conversations"].is_array() {
                return Err("whoever answers there is not a server of Offcut".into());
            }
            Ok(figures)
        }
        StatusCode::UNAUTHORIZED => {
            Err("the token is not this server's: it is new at each start".into())
        }
        other => Err(format!("the server answered with status {other}").into()),
    }
}
