//! Truncation: when a tool returns, a result over the limit is stored whole and replaced by a
//! preview and a hint.
//!
//! Whole results and streams go the same way: [`splitter`] sees the chunks and says what leaves
//! memory, [`run`] does it, and at the end [`cut`] decides what is shown.

mod cut;
mod file_read;
mod handled;
mod pages;
mod passing;
mod run;
mod save;
mod spill;
mod splitter;
mod stream;
mod text;
mod treat;
mod truncated;
mod written;

use crate::content::{ToolCall, ToolOutput};
use crate::error::Error;
use crate::session::Session;

pub use stream::TruncatedStream;
pub(crate) use stream::truncate_stream;
pub use truncated::Truncated;

/// Reads the result to its end and says what is to be shown of it.
pub(crate) async fn truncate(
    session: &Session,
    call: &ToolCall,
    output: ToolOutput,
) -> Result<Truncated, Error> {
    match handled::handler(session, call) {
        Some(handler) => handled::truncate(session, call, &*handler, output).await,
        None => treat::treat(session, call, output, None).await,
    }
}
