//! Bodies of HTTP as streams of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::io::{AsyncRead, ReadBuf};

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
