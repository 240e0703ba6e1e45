//! Bodies, and answers of the endpoint itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::gateway::message::is_dense;
use crate::http::room::{PIECE, TakenRoom};
pub(super) use crate::remote::connection::{Body, BoxError};

/// A body of these bytes.
pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    let body = Full::new(bytes.into()).map_err(|never| match never {});
    body.boxed_unsync()
}

/// A message, and the room that it takes until it is on its way.
pub(super) fn held(bytes: Bytes, room: TakenRoom) -> Body {
    if room.is_empty() {
        return full(bytes);
    }
    let both = futures_util::stream::unfold((Some(bytes), room), async |(bytes, room)| {
        let frame = Frame::data(bytes?);
        Some((Ok(frame), (None, room)))
    });
    BodyExt::boxed_unsync(StreamBody::new(both))
}

/// A body that passes as it comes.
pub(super) fn passed(body: Incoming) -> Body {
    body.map_err(BoxError::from).boxed_unsync()
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// An answer with a message.
pub(super) fn json(status: StatusCode, message: String) -> Response<Body> {
    let mut response = Response::new(full(message));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// An error of JSON-RPC's, of the request with this id in JSON.
pub(super) fn error(
    status: StatusCode,
    code: i32,
    message: &str,
    id: Option<&str>,
) -> Response<Body> {
    json(status, error_text(code, message, id))
}

pub(super) fn error_text(code: i32, message: &str, id: Option<&str>) -> String {
    error_as_text(
        &json!({"code": code, "message": format!("offcut: {message}")}),
        id,
    )
}

/// The same, of an error as the protocol has it.
pub(super) fn error_as_text(error: &Value, id: Option<&str>) -> String {
    let id = id.unwrap_or("null");
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// A body that was read as far as a limit allows.
pub(super) enum Read {
    /// All of it, and the room that it takes.
    Whole(Bytes, TakenRoom),
    /// It is longer than the limit, or takes too much memory: all of it, to be passed on as it comes.
    Long(Body),
}

/// Room for the messages that are held at the same time, so that a few clients can't fill the memory.
pub(super) struct MessageRoom {
    /// Maximum length of one message, in bytes.
    max: usize,
    all: Arc<Semaphore>,
}

impl MessageRoom {
    /// Room for two messages of `max` bytes, and for many short ones.
    pub(super) fn new(max: usize) -> Self {
        let pieces = (max / PIECE).saturating_mul(2).saturating_add(256);
        let all = Arc::new(Semaphore::new(pieces.min(Semaphore::MAX_PERMITS)));
        Self { max, all }
    }

    /// The room for a message without a byte.
    pub(super) fn begin(&self) -> TakenRoom {
        TakenRoom::new(self.all.clone())
    }

    /// Reads a body up to the maximum, as far as there is room.
    ///
    /// # Errors
    ///
    /// The body broke off, or a client's trickles: otherwise, a few clients could hold all connections.
    pub(super) async fn read(
        &self,
        mut body: Incoming,
        sender: BodySender,
    ) -> Result<Read, BoxError> {
        let mut room = self.begin();
        let (mut frames, mut has_room) = (Vec::new(), true);
        let (mut length, mut end) = (0, Instant::now() + BODY);
        while length <= self.max && has_room {
            let next = match sender {
                BodySender::Client => timeout_at(end, body.frame()).await?,
                BodySender::Server => body.frame().await,
            };
            let Some(frame) = next else {
                let whole = Bytes::from(frames.concat());
                return Ok(if sender == BodySender::Client && is_dense(&whole) {
                    Read::Long(full(whole))
                } else {
                    Read::Whole(whole, room)
                });
            };
            if let Ok(data) = frame?.into_data() {
                length += data.len();
                // Bytes that arrive at once earn no longer silence later.
                let earned = Duration::from_secs_f64(data.len() as f64 / LEAST_RATE);
                end = (end + earned).min(Instant::now() + BODY);
                frames.push(data);
            }
            has_room = room.grow(length);
        }
        let read = futures_util::stream::iter(
            frames
                .into_iter()
                .map(|data| Ok::<_, BoxError>(Frame::data(data))),
        );
        let rest = futures_util::stream::unfold(body, |mut body| async move {
            let frame = body.frame().await?;
            Some((frame.map_err(BoxError::from), body))
        });
        let all = futures_util::StreamExt::chain(read, rest);
        Ok(Read::Long(BodyExt::boxed_unsync(StreamBody::new(all))))
    }
}

/// The side that sends a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodySender {
    /// Its body may not trickle, and is not read where it would take much more memory than bytes.
    Client,
    Server,
}

/// Time for a body, and the least number of bytes a second above which it may take longer.
const BODY: Duration = Duration::from_secs(60);
const LEAST_RATE: f64 = 4096.0;

/// Removes the headers that belong to one connection, and those that the endpoint makes anew.
pub(super) fn strip(headers: &mut HeaderMap) {
    strip_but_length(headers);
    headers.remove(header::CONTENT_LENGTH);
}

/// Does the same before a body that stays as it is, whose length stays too.
pub(super) fn strip_but_length(headers: &mut HeaderMap) {
    crate::http::strip(headers);
    for name in [header::HOST, header::EXPECT] {
        headers.remove(name);
    }
}
