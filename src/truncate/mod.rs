//! Truncation: when a tool returns, a result over the limit is stored whole and replaced by a
//! preview and a hint.
//!
//! Whole results and streams take the same path: [`held`] takes the chunks and says what leaves
//! memory, [`run`] does it, and at the end [`plan`] decides what is shown.

mod cut;
mod file_read;
mod handled;
mod held;
mod job;
mod plan;
mod run;
mod spill;
mod stream;
mod text;
mod token_sum;

use job::Job;

use crate::content::{ToolCall, ToolOutput};
use crate::error::OffloadError;
use crate::session::Session;

pub use stream::{Truncated, TruncatedStream};

/// Reads the result to its end and returns what to show of it.
pub(crate) async fn truncate(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
) -> Result<Truncated, OffloadError> {
    let Some(job) = Job::new(session, call) else {
        return Ok(Truncated::unchanged(output).await);
    };
    match &job.policy.hooks.trunc_handler {
        Some(handler) => handled::truncate(&job, &**handler, output).await,
        None => stream::truncate_by_limit(job, output, None).await,
    }
}

/// Shows the result as it arrives. A result with a handler is shown once it has ended.
pub(crate) fn truncate_stream(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
) -> TruncatedStream {
    let (session, is_error, job) = (session.clone(), output.is_error, Job::new(session, call));
    if let Some(job) = &job
        && let Some(handler) = job.policy.hooks.trunc_handler.clone()
    {
        let job = job.clone();
        let handled = async move { handled::truncate(&job, &*handler, output).await };
        return TruncatedStream::whole(session, is_error, handled);
    }
    TruncatedStream::new(session, is_error, stream::Flow::new(job, output.body))
}
