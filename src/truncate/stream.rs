//! Results decided by their limit alone: read to their end, or shown as they arrive.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream, Stream};

use super::job::{Job, report};
use super::run::Run;
use crate::content::{Body, Chunk, Part, ToolError, ToolOutput, parts_of};
use crate::error::OffloadError;
use crate::hint::Placement;
use crate::report::{Failure, Report};
use crate::session::Session;

/// The result as the model should see it, and a report.
#[derive(Debug)]
#[non_exhaustive]
pub struct Truncated {
    /// Parts to show.
    pub parts: Vec<Part>,
    /// True if the tool reported a failure.
    pub is_error: bool,
    /// Error that ended the tool's stream early.
    pub interrupted: Option<ToolError>,
    /// The report on this result.
    pub report: Report,
}

impl Truncated {
    /// The unchanged result of a tool whose results are never truncated.
    pub(super) async fn unchanged(output: ToolOutput) -> Self {
        let is_error = output.is_error;
        let (parts, interrupted) = output.into_parts().await;
        Self {
            parts,
            is_error,
            interrupted,
            report: report(None),
        }
    }

    /// The texts shown, concatenated.
    #[must_use]
    pub fn text(&self) -> String {
        let mut all = String::new();
        for part in &self.parts {
            if let Part::Text(text) = part {
                all.push_str(text);
            }
        }
        all
    }
}

/// The parts to show. An error that ended the stream early becomes the last part, as text.
impl From<Truncated> for Vec<Part> {
    fn from(truncated: Truncated) -> Self {
        let error = truncated
            .interrupted
            .map(|error| Part::Text(error.to_string()));
        truncated.parts.into_iter().chain(error).collect()
    }
}

/// The parts to show. An error that ended the tool's stream early ends this one too.
impl From<Truncated> for ToolOutput {
    fn from(truncated: Truncated) -> Self {
        let Truncated {
            parts,
            is_error,
            interrupted,
            report: _,
        } = truncated;
        let body = match interrupted {
            None => Body::Parts(parts),
            Some(error) => {
                let parts = stream::iter(parts).map(|part| Ok(Chunk::Part(part)));
                Body::Stream(parts.chain(stream::iter([Err(error)])).boxed())
            }
        };
        Self { body, is_error }
    }
}

/// A tool's result as the model should see it, chunk by chunk: its beginning at once, the rest once
/// it has ended. If it is over the limit, the rest is its end and a hint that says where all of it
/// is.
///
/// # Guarantees
///
/// - **Bounded.** Memory does not grow with the length of the texts, beyond a few times the limit.
///   Parts that are not text are held while the text before them continues.
/// - **Back-pressure.** The tool is asked for more only after everything before is stored.
/// - **Aborted when dropped.** Content that has no name yet leaves nothing behind.
///
/// The error that ends the tool's stream ends this one, after everything that came before it. A
/// store that fails is not an error of this stream, unless `on_offload_error` is `Fail`: see
/// [`report`](Self::report).
pub struct TruncatedStream {
    /// True if the tool reported a failure.
    pub is_error: bool,
    chunks: BoxStream<'static, Result<Chunk, ToolError>>,
    report: Arc<OnceLock<Report>>,
}

impl TruncatedStream {
    /// Returns the report once the stream has ended, `None` before.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.report.get()
    }

    /// A result that is shown as it arrives.
    pub(super) fn new(session: Session, is_error: bool, flow: Flow) -> Self {
        let report = Arc::new(OnceLock::new());
        let seen = report.clone();
        let chunks = stream::unfold((flow, session, seen), async |(mut flow, session, seen)| {
            let chunk = flow.next().await;
            if let Some(report) = flow.report.take() {
                session.observe(&report);
                // Set only once: nothing comes after the end.
                _ = seen.set(report);
            }
            let chunk = chunk?.map_err(|broken| match broken {
                Broken::Tool(error) => error,
                Broken::Store(error) => error.into(),
            });
            Some((chunk, (flow, session, seen)))
        });
        Self {
            is_error,
            // `unfold` panics if polled after its end.
            chunks: chunks.fuse().boxed(),
            report,
        }
    }

    /// A result that is shown as a whole once `truncated` is ready.
    pub(super) fn whole(
        session: Session,
        is_error: bool,
        truncated: impl Future<Output = Result<Truncated, OffloadError>> + Send + 'static,
    ) -> Self {
        let report = Arc::new(OnceLock::new());
        let seen = report.clone();
        let chunks = async move {
            match truncated.await {
                Ok(truncated) => {
                    session.observe(&truncated.report);
                    _ = seen.set(truncated.report.clone());
                    ToolOutput::from(truncated).body.chunks()
                }
                Err(error) => stream::iter([Err(error.into())]).boxed(),
            }
        };
        Self {
            is_error,
            chunks: stream::once(chunks).flatten().fuse().boxed(),
            report,
        }
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

/// Truncates a result without a handler, reading it to its end. `failure` is the reason why no
/// handler decided.
pub(super) async fn truncate_by_limit(
    job: Arc<Job>,
    output: ToolOutput,
    failure: Option<Failure>,
) -> Result<Truncated, OffloadError> {
    let ToolOutput { body, is_error } = output;
    let is_stream = matches!(body, Body::Stream(_));
    let mut run = Run::new(job, Placement::First, is_stream);
    let (mut shown, mut interrupted) = (Vec::new(), None);
    match body {
        Body::Parts(parts) => {
            for part in parts {
                shown.extend(run.feed(Chunk::Part(part)).await?);
            }
        }
        Body::Stream(mut chunks) => {
            while let Some(chunk) = chunks.next().await {
                match chunk {
                    Ok(chunk) => shown.extend(run.feed(chunk).await?),
                    Err(error) => {
                        interrupted = Some(error);
                        break;
                    }
                }
            }
        }
    }
    let (rest, mut report) = run.finish(interrupted.is_some()).await?;
    shown.extend(rest);
    if let (Some(decision), Some(failure)) = (report.decisions.first_mut(), failure) {
        decision.fail_first(failure);
    }
    Ok(Truncated {
        parts: parts_of(shown).0,
        is_error,
        interrupted,
        report,
    })
}

/// An incoming result, and what is shown of it as it arrives.
pub(super) struct Flow {
    source: BoxStream<'static, Result<Chunk, ToolError>>,
    /// `None` if everything passes, and at the end.
    run: Option<Run>,
    ready: VecDeque<Result<Chunk, Broken>>,
    is_done: bool,
    /// The report at the end; `None` if the store ends the result.
    report: Option<Report>,
}

/// An error that ends a result early.
enum Broken {
    Tool(ToolError),
    Store(OffloadError),
}

impl Flow {
    /// Without a job everything passes.
    pub(super) fn new(job: Option<Arc<Job>>, body: Body) -> Self {
        Self {
            source: body.chunks(),
            run: job.map(|job| Run::new(job, Placement::Last, true)),
            ready: VecDeque::new(),
            is_done: false,
            report: None,
        }
    }

    async fn next(&mut self) -> Option<Result<Chunk, Broken>> {
        while self.ready.is_empty() && !self.is_done {
            if let Err(error) = self.go_on().await {
                (self.run, self.is_done) = (None, true);
                self.ready.push_back(Err(Broken::Store(error)));
            }
        }
        self.ready.pop_front()
    }

    async fn go_on(&mut self) -> Result<(), OffloadError> {
        let broken = match self.source.next().await {
            Some(Ok(chunk)) => {
                let shown = match &mut self.run {
                    Some(run) => run.feed(chunk).await?,
                    None => vec![chunk],
                };
                self.ready.extend(shown.into_iter().map(Ok));
                return Ok(());
            }
            Some(Err(error)) => Some(error),
            None => None,
        };
        let (shown, report) = match self.run.take() {
            Some(run) => run.finish(broken.is_some()).await?,
            None => (Vec::new(), report(None)),
        };
        (self.report, self.is_done) = (Some(report), true);
        self.ready.extend(shown.into_iter().map(Ok));
        self.ready
            .extend(broken.map(|error| Err(Broken::Tool(error))));
        Ok(())
    }
}
