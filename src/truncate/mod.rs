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

use job::Job;

use crate::content::{ToolCall, ToolOutput};
use crate::error::OffloadError;
use crate::session::Session;

pub use truncated::Truncated;

/// Reads the result to its end and returns what to show of it.
pub(crate) async fn truncate(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
) -> Result<Truncated, OffloadError> {
    let Some(job) = Job::new(session, call) else {
        let is_error = output.is_error;
        let (parts, interrupted) = output.into_parts().await;
        return Ok(Truncated::new(parts, is_error, interrupted, None));
    };
    match &job.policy.hooks.trunc_handler {
        Some(handler) => handled::truncate(job, &**handler, output).await,
        None => run::truncate_by_limit(job, output, None).await,
    }
}
