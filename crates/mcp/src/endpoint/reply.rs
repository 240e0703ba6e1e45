//! Bodies, and answers of the endpoint itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::gateway::McpGateway;
use crate::gateway::message::{Party, error_text};
use crate::http::room::{PIECE, TakenRoom};

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// The body of an answer.
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The code of a request that the endpoint does not answer.
pub(super) const REFUSED: i32 = -32000;

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

/// Refuses a client's message that was not read.
pub(super) fn not_read(gateway: &McpGateway, problem: &NotRead) -> Response<Body> {
    match problem {
        NotRead::TooLong => {
            gateway.note_long("a client");
            let text = format!("the message is {}", gateway.too_long());
            error(StatusCode::PAYLOAD_TOO_LARGE, REFUSED, &text, None)
        }
        NotRead::BrokeOff => empty(StatusCode::BAD_REQUEST),
    }
}

/// The reason for which a body was not read.
pub(super) enum NotRead {
    /// It is over the maximum, or takes more memory than there is room for.
    TooLong,
    /// It broke off, or a client's trickles: otherwise, a few clients could hold all connections.
    BrokeOff,
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

    /// Reads a body, which may not trickle if a client sends it. Returns it with the room that it takes.
    pub(super) async fn read(
        &self,
        mut body: Incoming,
        sender: Party,
    ) -> Result<(Bytes, TakenRoom), NotRead> {
        let mut room = self.begin();
        let (mut frames, mut length) = (Vec::new(), 0);
        let mut end = Instant::now() + BODY;
        loop {
            let next = match sender {
                Party::Client => timeout_at(end, body.frame()).await,
                Party::Server => Ok(body.frame().await),
            };
            let Some(frame) = next.map_err(|_| NotRead::BrokeOff)? else {
                break;
            };
            let frame = frame.map_err(|_| NotRead::BrokeOff)?;
            if let Ok(data) = frame.into_data() {
                length += data.len();
                // Bytes that arrive at once earn no longer silence later.
                let earned = Duration::from_secs_f64(data.len() as f64 / LEAST_RATE);
                end = (end + earned).min(Instant::now() + BODY);
                frames.push(data);
            }
            if length > self.max || !room.grow(length) {
                return Err(NotRead::TooLong);
            }
        }
        Ok((frames.concat().into(), room))
    }
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
