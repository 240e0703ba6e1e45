//! Results that a user's handler decides about, as a whole.

use std::sync::Arc;

use crate::backend::layout::Phase;
use bytes::Bytes;
use futures_util::stream;

use super::job::{Job, report, text_bytes};
use super::run::truncate_by_limit;
use super::truncated::Truncated;
use crate::backend::content::Target;
use crate::backend::{BackendError, Location};
use crate::content::{Body, Chunk, Part, ToolError, ToolOutput, parts_of};
use crate::error::OffloadError;
use crate::guard::guard_future;
use crate::handler::{Action, Replacement, ToolOutcome, TruncHandler};
use crate::hint::Kind;
use crate::report::{Change, Decision, ErrorSource, Outcome, Reason};

/// Truncates a result as the job's `handler` decides.
pub(super) async fn truncate(
    job: &Arc<Job>,
    handler: &dyn TruncHandler,
    output: ToolOutput,
) -> Result<Truncated, OffloadError> {
    let whole = Whole::collect(output).await;
    // A page must be shown as it is: a handler that cuts it makes the model read forever.
    let decided = if is_own_page(job, &whole.parts) {
        Ok(Action::Default)
    } else {
        let outcome = ToolOutcome {
            call: job.call.clone(),
            parts: whole.parts.clone(),
            is_error: whole.is_error,
        };
        guard_future("the truncation handler", handler.handle(outcome)).await
    };
    let failure = match decided {
        // The parts shown would differ from the original bytes, which would be stored nowhere.
        Ok(Action::Keep) if whole.is_lossy => None,
        Ok(Action::Default) => None,
        Ok(Action::Keep) => {
            let parts = whole.parts.clone();
            let decision = job.decision(Outcome::Kept(Reason::Handler));
            return Ok(whole.shown_as(parts, decision));
        }
        Ok(Action::Replace(replacement)) => return replace(job, whole, &replacement).await,
        Err(error) => Some(ErrorSource::Handler.said(&error)),
    };
    truncate_by_limit(job.clone(), whole.into_output(), failure).await
}

async fn replace(
    job: &Arc<Job>,
    whole: Whole,
    replacement: &Replacement,
) -> Result<Truncated, OffloadError> {
    let mut decision = job.decision(Outcome::Lost);
    if let Some(content) = replacement.content.clone() {
        match save(job, replacement, content, &mut decision).await {
            Ok(location) => {
                decision.outcome = Outcome::Replaced;
                decision.locations.push(location);
            }
            Err(error) => {
                let (said, keeps) = job.store_failed(error)?;
                decision.fail_first(said);
                if keeps {
                    let parts = whole.parts.clone();
                    decision.outcome = Outcome::Kept(Reason::StoreFailed);
                    return Ok(whole.shown_as(parts, decision));
                }
            }
        }
    }
    match replacement.show(decision.locations.first()) {
        Ok(parts) => Ok(whole.shown_as(parts, decision)),
        Err(error) => {
            let failure = ErrorSource::Handler.said(&error);
            truncate_by_limit(job.clone(), whole.into_output(), Some(failure)).await
        }
    }
}

/// Stores the handler's content, and records what is wrong with its id.
async fn save(
    job: &Job,
    replacement: &Replacement,
    content: Bytes,
    decision: &mut Decision,
) -> Result<Location, BackendError> {
    let (session, call) = (&job.session, &job.call);
    let (id, failure) = match &replacement.id {
        None => session.id_of(Phase::Truncate, &call.id, || call.clone()),
        Some(id) => session.given_id(id, &call.id, ErrorSource::Handler),
    };
    decision.fail_first(failure);
    let name = id.name_of(&content);
    let target = Target::new(&session.roots, Phase::Truncate, &name, &content);
    target.save(&*job.backend, content).await
}

/// A whole result, unchanged.
struct Whole {
    chunks: Vec<Chunk>,
    /// The same content, with adjacent text joined.
    parts: Vec<Part>,
    /// `true` if `parts` have replacement characters for bytes that are not UTF-8.
    is_lossy: bool,
    is_stream: bool,
    is_error: bool,
    interrupted: Option<ToolError>,
}

impl Whole {
    async fn collect(output: ToolOutput) -> Self {
        let ToolOutput { body, is_error } = output;
        let is_stream = matches!(body, Body::Stream(_));
        let (chunks, interrupted) = body.collect().await;
        let (parts, is_lossy) = parts_of(chunks.iter().cloned());
        Self {
            chunks,
            parts,
            is_lossy,
            is_stream,
            is_error,
            interrupted,
        }
    }

    /// The unchanged result.
    fn into_output(self) -> ToolOutput {
        let body = if self.is_stream {
            let error = self.interrupted.map(Err);
            ToolOutput::stream(stream::iter(self.chunks.into_iter().map(Ok).chain(error))).body
        } else {
            Body::Parts(self.parts)
        };
        ToolOutput {
            body,
            is_error: self.is_error,
        }
    }

    /// `parts` instead of the result.
    fn shown_as(self, parts: Vec<Part>, mut decision: Decision) -> Truncated {
        let size = |parts: &[Part]| parts.iter().map(text_bytes).sum();
        decision.bytes = Change {
            before: size(&self.parts),
            after: size(&parts),
        };
        Truncated {
            parts,
            is_error: self.is_error,
            interrupted: self.interrupted,
            report: report(Some(decision)),
        }
    }
}

fn is_own_page(job: &Job, parts: &[Part]) -> bool {
    let [Part::Text(text)] = parts else {
        return false;
    };
    let hints = job
        .session
        .apparent_hints(&job.policy, text)
        .unwrap_or_default();
    matches!(&hints[..], [own] if matches!(own.hint.kind, Kind::Page { .. } | Kind::Matches))
}
