//! Bodies, and answers of the endpoint itself.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;

use crate::gateway::McpGateway;
use crate::gateway::message::error_text;
use crate::http::flushed;
use crate::http::room::{NotRead, TakenRoom};
pub(super) use crate::http::{Body, BoxError, full};

/// The code of a request that the endpoint does not answer.
pub(super) const REFUSED: i32 = -32000;

/// A message, and the room that it takes until it is on its way.
pub(super) fn held(bytes: Bytes, room: TakenRoom) -> Body {
    let both = futures_util::stream::unfold((Some(bytes), room), async |(bytes, room)| {
        let frame = Frame::data(bytes?);
        Some((Ok(frame), (None, room)))
    });
    BodyExt::boxed_unsync(StreamBody::new(both))
}

/// A body that passes as it comes.
pub(super) fn passed(body: Incoming) -> Body {
    flushed(body).map_err(BoxError::from).boxed_unsync()
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

/// An answer that the endpoint gives in place of a server's.
pub(super) type Refusal = Box<Response<Body>>;

pub(super) fn refusal(status: StatusCode, code: i32, text: &str) -> Refusal {
    Box::new(error(status, code, text, None))
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

/// Removes the headers that belong to one connection, and those that the endpoint makes anew.
pub(super) fn strip(headers: &mut HeaderMap) {
    crate::http::strip(headers);
    for name in [header::CONTENT_LENGTH, header::HOST, header::EXPECT] {
        headers.remove(name);
    }
}
