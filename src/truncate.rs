//! Truncation: when a tool returns, a result over the limit is stored whole and replaced by a
//! preview and a hint.
//!
//! Whole results and streams go the same way: [`splitter`] sees the chunks and says what leaves
//! memory, [`run`] does it, and at the end [`cut`] decides what is shown.

mod cut;
mod file_read;
mod handled;
mod passing;
mod run;
mod save;
mod spill;
mod splitter;
mod stream;
mod text;

use std::sync::Arc;

use futures_util::StreamExt;

use crate::content::{Body, Chunk, Part, Parts, ToolCall, ToolError, ToolOutput};
use crate::error::Error;
use crate::handler::{HandlerError, TruncHandler};
use crate::hint::Placement;
use crate::report::{self, Report};
use crate::session::Session;
use run::Run;

pub use stream::TruncatedStream;
pub(crate) use stream::truncate_stream;

/// What the model is to be shown of a result, and what was done to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Truncated {
    /// What is shown.
    pub parts: Vec<Part>,
    /// Whether the tool said that it failed.
    pub is_error: bool,
    /// The error that ended the tool's stream early.
    pub interrupted: Option<ToolError>,
    /// What was done.
    pub report: Report,
}

impl Truncated {
    /// The texts that are shown, one after the other.
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

/// What is shown. The error that ended a stream early is the last part, as text.
impl From<Truncated> for Vec<Part> {
    fn from(truncated: Truncated) -> Self {
        let error = truncated
            .interrupted
            .map(|error| Part::Text(error.to_string()));
        truncated.parts.into_iter().chain(error).collect()
    }
}

/// What is shown. The error that ended a stream early ends this one too.
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
                let chunks: Vec<_> = parts
                    .into_iter()
                    .map(|part| Ok(Chunk::Part(part)))
                    .chain([Err(error)])
                    .collect();
                ToolOutput::stream(futures_util::stream::iter(chunks)).body
            }
        };
        Self { body, is_error }
    }
}

/// Reads the result to its end and says what is to be shown of it.
pub(crate) async fn truncate(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
) -> Result<Truncated, Error> {
    match handler(session, call) {
        Some(handler) => handled::truncate(session, call, &*handler, output).await,
        None => treat(session, call, output, None).await,
    }
}

/// Who decides about the tool's results, if a user does.
fn handler(session: &Session, call: &ToolCall) -> Option<Arc<dyn TruncHandler>> {
    let policy = session.policy(&call.name);
    policy
        .hooks
        .trunc_handler
        .clone()
        .filter(|_| policy.truncates)
}

/// The default treatment. `problem` is why there is no other.
async fn treat(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
    problem: Option<HandlerError>,
) -> Result<Truncated, Error> {
    let ToolOutput { body, is_error } = output;
    let Some(mut run) = Run::new(
        session,
        call,
        Placement::First,
        matches!(body, Body::Stream(_)),
    ) else {
        let (parts, interrupted) = ToolOutput { body, is_error }.into_parts().await;
        return Ok(Truncated {
            parts,
            is_error,
            interrupted,
            report: nothing_done(),
        });
    };
    let (mut parts, mut interrupted) = (Parts::default(), None);
    match body {
        Body::Parts(whole) => {
            for part in whole {
                run.feed(Chunk::Part(part))
                    .await?
                    .into_iter()
                    .for_each(|chunk| parts.push(chunk));
            }
        }
        Body::Stream(mut chunks) => {
            while let Some(chunk) = chunks.next().await {
                match chunk {
                    Ok(chunk) => run
                        .feed(chunk)
                        .await?
                        .into_iter()
                        .for_each(|chunk| parts.push(chunk)),
                    Err(error) => {
                        interrupted = Some(error);
                        break;
                    }
                }
            }
        }
    }
    let (rest, report) = run.finish(interrupted.is_some()).await?;
    rest.into_iter().for_each(|chunk| parts.push(chunk));
    Ok(handled::noted(
        Truncated {
            parts: parts.finish(),
            is_error,
            interrupted,
            report,
        },
        problem,
    ))
}

fn nothing_done() -> Report {
    Report {
        phase: report::Phase::Truncate,
        ..Report::default()
    }
}
