//! Answers the events that agents send to their hooks.

mod answer;
mod claude_code;
mod codex;
mod error;
mod event;
mod gemini_cli;
mod plain;
mod surroundings;

use std::path::PathBuf;

use offcut::ToolReduction;

use crate::agents::Agent;
use event::{Event, Hook};

pub use answer::Answer;
pub use error::HookError;
pub use surroundings::Surroundings;

/// The name of the tool by which `agent` reads files, for hints. `None` if it only has a shell.
pub fn reader(agent: Agent) -> Option<&'static str> {
    match agent {
        Agent::ClaudeCode => Some("Read"),
        Agent::Codex => None,
        Agent::GeminiCli => Some("read_file"),
        Agent::OpenCode | Agent::Pi => Some("read"),
    }
}

/// Answers an `event`, as the agent wrote it.
///
/// `reduction` is one for all sessions; the event names its own. Nothing is cleared here: only a
/// result that is new is truncated.
///
/// # Errors
///
/// The event is not one of `agent`, or a result could not be stored. It then passes unchanged.
pub async fn answer(
    agent: Agent,
    event: &[u8],
    reduction: &ToolReduction,
    surroundings: &Surroundings,
) -> Result<Answer, HookError> {
    let event = &Event::parse(event)?;
    let hook = &Hook {
        agent,
        reduction,
        surroundings,
    };
    let is_of_ours = matches!(agent, Agent::OpenCode | Agent::Pi);
    if !is_of_ours && event.hook_event_name.is_empty() {
        return Err(HookError::new("the event lacks its `hook_event_name`"));
    }
    match agent {
        Agent::ClaudeCode => claude_code::answer(event, hook).await,
        Agent::Codex => codex::answer(event, hook).await,
        Agent::GeminiCli => gemini_cli::answer(event, hook).await,
        Agent::OpenCode | Agent::Pi => plain::answer(event, hook).await,
    }
}

/// The directory in which results of an `event` must be stored, because the reader of `agent` may open
/// no other one outside the project. `None` if any directory will do. The store of `surroundings` is
/// not used.
pub fn store(agent: Agent, event: &[u8], surroundings: &Surroundings) -> Option<PathBuf> {
    match agent {
        Agent::GeminiCli => gemini_cli::store(event, surroundings),
        Agent::ClaudeCode | Agent::Codex | Agent::OpenCode | Agent::Pi => None,
    }
}
