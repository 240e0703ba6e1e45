//! Events of agents whose extensions are ours: a text with its call.
//!
//! `{"session_id": …, "cwd": …, "tool_use_id": …, "tool_name": …, "tool_input": {…}, "tool_response": …}` is answered
//! by `{"output": …}`. `"spilled"` is the path of the file to which the agent has written all of the output, if it says
//! so in a field of its own.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::answer::Answer;
use super::error::HookError;
use super::event::{Event, EventText, Hook};
use super::surroundings::Surroundings;
use crate::agents::Agent;

pub(super) async fn answer(event: &Event, hook: &Hook<'_>) -> Result<Answer, HookError> {
    let Value::String(text) = &event.tool_response else {
        return Err(HookError::new("the event's `tool_response` must be a text"));
    };
    let text = EventText {
        spilled: spilled(hook.agent, event, hook.surroundings),
        ..EventText::new(event.tool_use_id.clone(), text.clone())
    };
    let (shorter, row) = hook.shorten(event, text).await?;
    let output = shorter.map(|shorter| json!({"output": shorter}));
    Ok(Answer::of(output, row))
}

/// The file to which the agent has spilled the output, if it is in the place for such files.
fn spilled(agent: Agent, event: &Event, surroundings: &Surroundings) -> Option<PathBuf> {
    let named = event.spilled.as_deref()?;
    let (file, starts, ends) = match agent {
        Agent::OpenCode => (
            surroundings.file_of_agent("tool-output", named)?,
            "tool_",
            "",
        ),
        Agent::Pi => (surroundings.temporary_file(named)?, "pi-bash-", ".log"),
        _ => return None,
    };
    let name = file.file_name()?.to_str()?;
    (name.starts_with(starts) && name.ends_with(ends)).then_some(file)
}
