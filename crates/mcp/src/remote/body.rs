//! Bodies of HTTP as streams of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

use super::connection::{Body, BoxError};

/// Reads an answer's body.
#[derive(Debug)]
pub(crate) struct BodyReader {
    body: Incoming,
    /// Bytes of the last frame that have not been read.
    rest: Bytes,
}

impl BodyReader {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            body,
            rest: Bytes::new(),
        }
    }
}

impl AsyncRead for BodyReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                return Poll::Ready(Ok(()));
            };
            let frame = frame.map_err(io::Error::other)?;
            // Trailers have no meaning here.
            self.rest = frame.into_data().unwrap_or_default();
        }
        let length = self.rest.len().min(to.remaining());
        to.put_slice(&self.rest[..length]);
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// A request's body that is sent as its parts come. It ends once the sender is dropped.
pub(super) fn in_parts() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, parts) = mpsc::channel(1);
    let frames = stream::unfold(parts, |mut parts: mpsc::Receiver<Bytes>| async move {
        let part = parts.recv().await?;
        Some((Ok::<_, BoxError>(Frame::data(part)), parts))
    });
    (sender, StreamBody::new(frames).boxed_unsync())
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
