//! Bodies of HTTP, and the messages in them.

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::{BodyDataStream, BodyExt, Limited};
use hyper::body::Incoming;

use crate::http::events::Events;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Reads a body of at most `max` bytes; a longer one fails with a
/// [`LengthLimitError`](http_body_util::LengthLimitError).
pub(crate) async fn whole(body: Incoming, max: usize) -> Result<Bytes, BoxError> {
    let mut frames = BodyDataStream::new(Limited::new(body, max));
    let mut whole = Vec::new();
    // A frame may be a byte, and costs more than that to keep.
    while let Some(frame) = frames.try_next().await? {
        whole.extend_from_slice(&frame);
    }
    Ok(whole.into())
}

/// The events of a body. One with more than `max` bytes is dropped.
pub(crate) fn events(body: Incoming, max: usize) -> Events<BodyDataStream<Incoming>> {
    Events::new(body.into_data_stream(), max)
}

/// The messages of an answer, each of at most a length.
pub(crate) enum AnswerMessages {
    /// One message that was not read yet.
    Json(Option<(Incoming, usize)>),
    Events(Box<Events<BodyDataStream<Incoming>>>),
}

impl AnswerMessages {
    pub(crate) fn new(answer: Response<Incoming>, max: usize) -> Self {
        match kind(answer.headers()) {
            Kind::Json => Self::Json(Some((answer.into_body(), max))),
            Kind::Events => Self::Events(Box::new(events(answer.into_body(), max))),
            Kind::Other => Self::Json(None),
        }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Json(body) => {
                let (body, max) = body.take()?;
                whole(body, max).await.ok().map(Vec::from)
            }
            Self::Events(events) => events.next_message().await,
        }
    }
}

/// The form of an answer.
pub(crate) enum Kind {
    Json,
    Events,
    Other,
}

pub(crate) fn kind(headers: &HeaderMap) -> Kind {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    if kind.starts_with(b"application/json") {
        Kind::Json
    } else if kind.starts_with(b"text/event-stream") {
        Kind::Events
    } else {
        Kind::Other
    }
}
