//! A result that is shown as it comes.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream, Stream};

use super::handled::{self, handler};
use super::run::Run;
use super::truncated::nothing_done;
use crate::content::{Body, Chunk, ToolCall, ToolError, ToolOutput};
use crate::error::Error;
use crate::hint::Placement;
use crate::report::Report;
use crate::session::Session;

/// What the model is to be shown of a tool's result, as it comes: its beginning at once, and once
/// it has ended the rest of it, or, where it was over the limit, its end and a hint that says where
/// all of it is.
///
/// # Guarantees
///
/// - **Bounded.** Memory does not grow with the length of the texts, beyond a few times the limit.
///   Parts that are no text are held while the text before them goes on.
/// - **Back-pressure.** Nothing is asked of the tool before what came is stored.
/// - **Aborted when dropped.** What was not named yet leaves nothing behind.
///
/// The error that ends the tool's stream ends this one, behind what came before it. A store that
/// fails is no error of this stream, unless `on_offload_error` is `Fail`: see
/// [`report`](Self::report).
pub struct TruncatedStream {
    /// Whether the tool said that it failed.
    pub is_error: bool,
    chunks: BoxStream<'static, Result<Chunk, ToolError>>,
    report: Arc<OnceLock<Report>>,
}

impl TruncatedStream {
    /// What was done, once the stream has ended.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.report.get()
    }
}

impl Stream for TruncatedStream {
    type Item = Result<Chunk, ToolError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_next_unpin(context)
    }
}

impl fmt::Debug for TruncatedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            is_error,
            chunks: _,
            report,
        } = self;
        f.debug_struct("TruncatedStream")
            .field("is_error", is_error)
            .field("report", &report.get())
            .finish_non_exhaustive()
    }
}

impl From<TruncatedStream> for ToolOutput {
    fn from(stream: TruncatedStream) -> Self {
        Self {
            is_error: stream.is_error,
            body: Body::Stream(stream.chunks),
        }
    }
}

/// What a result is as a stream: its parts are chunks.
fn chunks(body: Body) -> BoxStream<'static, Result<Chunk, ToolError>> {
    match body {
        Body::Parts(parts) => {
            stream::iter(parts.into_iter().map(|part| Ok(Chunk::Part(part)))).boxed()
        }
        Body::Stream(stream) => stream,
    }
}

pub(crate) fn truncate_stream(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
) -> TruncatedStream {
    let is_error = output.is_error;
    let report = Arc::new(OnceLock::new());
    if let Some(handler) = handler(session, call) {
        let (session, call, seen) = (session.clone(), call.clone(), report.clone());
        let handled = async move {
            let shown = match handled::truncate(&session, &call, &*handler, output).await {
                Ok(truncated) => {
                    session.observe(&truncated.report);
                    _ = seen.set(truncated.report.clone());
                    chunks(ToolOutput::from(truncated).body)
                }
                Err(error) => stream::iter([Err(error.into())]).boxed(),
            };
            shown.boxed()
        };
        return TruncatedStream {
            is_error,
            chunks: stream::once(handled).flatten().fuse().boxed(),
            report,
        };
    }
    let body = output.body;
    let state = State {
        source: chunks(body).fuse().boxed(),
        run: Run::new(session, call, Placement::Last, true),
        ready: VecDeque::new(),
        is_done: false,
        session: session.clone(),
        report: report.clone(),
    };
    // `unfold` panics when it is polled behind its end.
    let chunks = stream::unfold(state, async |mut state| {
        state.next().await.map(|chunk| (chunk, state))
    })
    .fuse();
    TruncatedStream {
        is_error,
        chunks: chunks.boxed(),
        report,
    }
}

struct State {
    source: BoxStream<'static, Result<Chunk, ToolError>>,
    /// `None` where everything passes, and at the end.
    run: Option<Run>,
    ready: VecDeque<Result<Chunk, ToolError>>,
    is_done: bool,
    session: Session,
    report: Arc<OnceLock<Report>>,
}

impl State {
    async fn next(&mut self) -> Option<Result<Chunk, ToolError>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(chunk);
            }
            if self.is_done {
                return None;
            }
            let chunk = self.source.next().await;
            let Some(run) = &mut self.run else {
                // The tool's results are never truncated.
                if !matches!(chunk, Some(Ok(_))) {
                    self.end(nothing_done());
                }
                return chunk;
            };
            match chunk {
                Some(Ok(chunk)) => match run.feed(chunk).await {
                    Ok(shown) => self.ready.extend(shown.into_iter().map(Ok)),
                    Err(error) => self.fail(error),
                },
                Some(Err(error)) => {
                    self.finish(true).await;
                    // One error ends a stream: the store's, where that is to end it.
                    if !matches!(self.ready.back(), Some(Err(_))) {
                        self.ready.push_back(Err(error));
                    }
                }
                None => self.finish(false).await,
            }
        }
    }

    async fn finish(&mut self, interrupted: bool) {
        let Some(run) = self.run.take() else { return };
        match run.finish(interrupted).await {
            Ok((shown, report)) => {
                self.ready.extend(shown.into_iter().map(Ok));
                self.end(report);
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: Error) {
        self.run = None;
        self.is_done = true;
        self.ready.push_back(Err(error.into()));
    }

    fn end(&mut self, report: Report) {
        self.is_done = true;
        self.session.observe(&report);
        // It is set once: nothing comes after the end.
        _ = self.report.set(report);
    }
}
