//! Truncation: when a tool returns, a result over the limit is stored whole and replaced by a
//! preview and a hint.
//!
//! Whole results and streams take the same path: [`held`] takes the chunks and says what leaves
//! memory, [`run`] does it, and at the end [`plan`] decides what is shown.

mod file_read;
mod handled;
mod held;
mod job;
mod plan;
mod run;
mod spill;
mod truncated;

use futures_util::{StreamExt, stream};
use job::{Job, MAX_TAKEN_BACK};

use crate::config::{Hooks, Policy, PreviewLength};
use crate::content::{Body, Part, ToolCall, ToolOutput, parts_of};
use crate::error::OffloadError;
use crate::preview::Preview;
use crate::session::Session;

pub use truncated::Truncated;

/// Reads the result to its end and returns what to show of it.
pub(crate) async fn truncate(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
) -> Result<Truncated, OffloadError> {
    let Some(job) = Job::new(session, call) else {
        return show_whole(session, call, output).await;
    };
    match &job.policy.hooks.trunc_handler {
        Some(handler) => handled::truncate(job, &**handler, output).await,
        None => run::truncate_by_limit(job, output, None).await,
    }
}

/// Shows a result that is never truncated. Only bytes that no text can say are stored first.
async fn show_whole(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
) -> Result<Truncated, OffloadError> {
    let ToolOutput { body, is_error } = output;
    let (chunks, interrupted) = match body {
        Body::Parts(parts) => return Ok(Truncated::new(parts, is_error, None, None)),
        stream @ Body::Stream(_) => stream.collect().await,
    };
    let (parts, _) = parts_of(chunks.iter().cloned());
    let says_all = |part: &Part| !matches!(part, Part::Text(text) if text.contains(char::REPLACEMENT_CHARACTER));
    let says_all = parts.iter().all(says_all);
    let policy = session.policy(&call.name).clone();
    let whole = Policy {
        skip_truncation: false,
        max_length_for_trunc: usize::MAX,
        preview_length: PreviewLength::Bytes(MAX_TAKEN_BACK as usize),
        preview_above: None,
        preview: Preview::HeadTail,
        hooks: Hooks {
            trunc_handler: None,
            preview: None,
            ..policy.hooks
        },
        ..policy
    };
    let Some(job) = Job::of(session, call, &whole).filter(|_| !says_all) else {
        return Ok(Truncated::new(parts, is_error, interrupted, None));
    };
    drop(parts);
    let chunks = chunks.into_iter().map(Ok).chain(interrupted.map(Err));
    let output = ToolOutput {
        body: Body::Stream(stream::iter(chunks).boxed()),
        is_error,
    };
    run::truncate_by_limit(job, output, None).await
}
