//! The output of a command that has failed, which no event of the agent lets a hook replace.

use std::path::{Path, PathBuf};

use offcut::{ToolCall, ToolReduction};
use serde_json::json;

use super::answer::Answer;
use super::error::HookError;
use super::event::{shorten, stream};
use super::surroundings::Surroundings;
use crate::agents::Agent;
use crate::agents::journal::Entry;

/// Length in bytes to which Claude Code cuts the output of a command that has failed.
const OWN_LIMIT: usize = 10_000;
/// The name of its shell.
const TOOL: &str = "Bash";

/// A line of an agent's shell that has ended with an error.
#[derive(Debug, Clone)]
pub struct FailedLine {
    /// The agent.
    pub agent: Agent,
    /// The id of the conversation.
    pub session: String,
    /// An id for the call; the agent's own is unknown.
    pub call: String,
    /// The line, with what the agent puts around it.
    pub line: String,
    /// The file with all of its output.
    pub output: PathBuf,
}

/// Shortens the output of a line that has failed. [`Answer::output`] is the text in its place.
///
/// # Errors
///
/// The output can't be read or stored. It then stays as it is.
pub async fn shorten_failed(
    failed: &FailedLine,
    reduction: &ToolReduction,
    surroundings: &Surroundings,
) -> Result<Answer, HookError> {
    let length = usize::try_from(length(&failed.output)?).unwrap_or(usize::MAX);
    let length = length.min(OWN_LIMIT);
    let (agent, session) = (failed.agent.name(), &failed.session);
    let entry = Entry::new(agent, session, &failed.call, TOOL, length);
    let input = json!({"command": failed.line});
    if surroundings.reads_store(Path::new("/"), &input, &[], &["command"]) {
        return Ok(Answer::of(None, entry.read()));
    }
    let call = ToolCall::new(&failed.call, TOOL, input.to_string());
    let shorter = shorten(&reduction.session(session), &call, stream(&failed.output)?).await?;
    // The agent would cut the output too.
    let Some(shorter) = shorter.filter(|shorter| shorter.len() < length) else {
        return Ok(Answer::of(None, entry));
    };
    let entry = entry.shortened(shorter.len());
    Ok(Answer::of(Some(shorter), entry))
}

fn length(file: &Path) -> Result<u64, HookError> {
    let metadata = file.metadata();
    metadata
        .map(|metadata| metadata.len())
        .map_err(|error| HookError::because("the output can't be examined", error))
}
