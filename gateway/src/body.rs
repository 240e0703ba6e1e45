//! Bodies: read whole within a limit, or passed on as they arrive.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;

/// Number of bytes for which memory is reserved as soon as a body announces them.
const RESERVED: u64 = 1024 * 1024;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// A body of a request or of a reply.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A body that was read as far as the limit allows.
pub(crate) enum Read {
    /// All of it.
    Whole(Bytes),
    /// It is longer than the limit: all of it, to be passed on.
    TooLong(Body),
}

/// A client's body can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the request's body has paused for too long")]
    TooSlow,
    #[error("the request's body broke off")]
    BrokeOff(#[source] hyper::Error),
}

/// A body of these bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// No body.
pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A client's body as it arrives; it fails if it pauses for longer than `pause`.
pub(crate) fn passed(body: Incoming, pause: Duration) -> Body {
    if body.is_end_stream() {
        return empty();
    }
    let frames = stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        match next(&mut body, pause).await {
            Ok(frame) => Some((Ok(frame?), Some(body))),
            Err(error) => Some((Err(error.into()), None)),
        }
    });
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// Reads a client's body of up to `max` bytes.
pub(crate) async fn read(
    mut body: Incoming,
    max: usize,
    pause: Duration,
) -> Result<Read, ReadError> {
    // Nothing is read of a body that is announced as too long.
    let announced = body.size_hint().exact();
    let is_known_too_long = announced.is_some_and(|length| length > max as u64);
    // Memory that is reserved and not written to costs nothing either, up to a limit.
    let reserved = announced.map_or(0, |length| length.min(RESERVED));
    let mut whole = Vec::with_capacity(usize::try_from(reserved).unwrap_or_default());
    while !is_known_too_long && whole.len() <= max {
        let Some(frame) = next(&mut body, pause).await? else {
            return Ok(Read::Whole(whole.into()));
        };
        if let Some(data) = frame.data_ref() {
            whole.extend_from_slice(data);
        }
    }
    let begun = stream::iter([Ok(Frame::data(Bytes::from(whole)))]);
    let rest = passed(body, pause).into_data_stream();
    let all = begun.chain(rest.map(|data| data.map(Frame::data)));
    Ok(Read::TooLong(BodyExt::boxed_unsync(StreamBody::new(all))))
}

async fn next(body: &mut Incoming, pause: Duration) -> Result<Option<Frame<Bytes>>, ReadError> {
    let frame = timeout(pause, body.frame())
        .await
        .map_err(|_| ReadError::TooSlow)?;
    frame.transpose().map_err(ReadError::BrokeOff)
}
