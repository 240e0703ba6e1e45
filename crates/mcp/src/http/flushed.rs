//! Bodies that fail.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};

/// A body that gives its reader a turn before it fails.
///
/// hyper drops what it has not written yet, heads included, when a body fails. A server that breaks off
/// right after an event would so take the event with it.
#[derive(Debug)]
pub struct Flushed<B: Body> {
    body: B,
    error: Option<B::Error>,
}

impl<B: Body> Flushed<B> {
    /// Wraps a body.
    pub fn new(body: B) -> Self {
        Self { body, error: None }
    }
}

impl<B: Body<Error: Unpin> + Unpin> Body for Flushed<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Err(error)) => {
                self.error = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            frame => Poll::Ready(frame),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.error.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
