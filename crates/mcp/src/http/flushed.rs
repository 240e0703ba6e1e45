//! Bodies that fail.

use futures_util::StreamExt as _;
use http_body::Body;
use http_body_util::{BodyStream, StreamBody};

/// The body with a turn for its reader before it fails.
///
/// hyper drops what it has not written yet, heads included, when a body fails. A server that breaks off
/// right after an event would so take the event with it.
pub fn flushed<B: Body>(body: B) -> impl Body<Data = B::Data, Error = B::Error> {
    StreamBody::new(BodyStream::new(body).then(async |frame| {
        if frame.is_err() {
            tokio::task::yield_now().await;
        }
        frame
    }))
}
