//! Truncation: when a tool returns, a result over the limit is stored whole and replaced by a
//! preview and a hint.
//!
//! [`whole`] does that with what is in memory, and [`stream`] with a text that is too long to be held.

mod file_read;
mod handled;
mod job;
mod plan;
mod stream;
mod whole;

use futures_util::StreamExt;
use futures_util::stream::iter;
use job::Job;

use crate::content::{Body, Chunk, Part, ToolCall, ToolError, ToolOutput, texts_of};
use crate::error::OffloadError;
use crate::report::{Phase, Report};
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
    /// The texts shown, concatenated.
    #[must_use]
    pub fn text(&self) -> String {
        texts_of(&self.parts)
    }

    /// The parts to show, as [`Vec::from`] gives them, but without those that a message does not
    /// [take](crate::format::LoopFormat::takes) beside the others.
    #[must_use]
    pub fn for_message(self, takes: impl Fn(&Part) -> bool) -> Vec<Part> {
        let mut parts = Vec::from(self);
        let is_dropped = |part: &Part| matches!(part, Part::Text(_)) && !takes(part);
        match parts.iter().all(is_dropped) {
            true => parts.truncate(1),
            false => parts.retain(|part| !is_dropped(part)),
        }
        parts
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
                let parts = iter(parts).map(|part| Ok(Chunk::Part(part)));
                Body::Stream(parts.chain(iter([Err(error)])).boxed())
            }
        };
        Self { body, is_error }
    }
}

/// Reads the result to its end and returns what to show of it.
pub(crate) async fn truncate(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
) -> Result<Truncated, OffloadError> {
    let ToolOutput { body, is_error } = output;
    let policy = session.policy(&call.name);
    let is_exempt = policy.skip_truncation;
    let handler = policy.hooks.trunc_handler.as_ref();
    let handler = handler.filter(|_| !is_exempt);
    let (parts, decision, interrupted) = match (Job::new(session, call), body) {
        (Some(job), Body::Stream(stream)) if !is_exempt && handler.is_none() => {
            let (parts, decision, interrupted) = stream::truncate(job, stream).await?;
            (parts, Some(decision), interrupted)
        }
        (job, body) => {
            let (gathered, interrupted) = body.gather().await;
            let is_broken = interrupted.is_some() && gathered.is_open();
            let arrived = gathered.into_parts();
            // Even an exempt tool's bytes are stored if no text can say them.
            let is_lossy = |(part, bytes): &(Part, Option<_>)| matches!(part, Part::Text(text) if bytes.is_some() && text.contains(char::REPLACEMENT_CHARACTER));
            let job = job.filter(|_| !is_exempt || arrived.iter().any(is_lossy));
            match job {
                None => {
                    let parts = arrived.into_iter().map(|(part, _)| part);
                    (parts.collect(), None, interrupted)
                }
                Some(job) => {
                    let (parts, decision) = match handler {
                        Some(handler) => {
                            handled::truncate(job, &**handler, arrived, is_error, is_broken).await?
                        }
                        None => whole::truncate(job, arrived, is_broken).await?,
                    };
                    (parts, Some(decision), interrupted)
                }
            }
        }
    };
    Ok(Truncated {
        parts,
        is_error,
        interrupted,
        report: Report {
            phase: Phase::Truncate,
            decisions: decision.into_iter().collect(),
            ..Report::default()
        },
    })
}
