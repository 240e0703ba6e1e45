//! Events of agents whose extensions are ours: a text with its call, in JSON of our own.
//!
//! `{"session": …, "directory": …, "call_id": …, "tool": …, "input": {…}, "output": …}` is answered by
//! `{"output": …}`. `"spilled"` is the path of the file to which the agent has written all of the output,
//! if it says so in a field of its own.

use std::path::PathBuf;

use offcut::{ToolCall, ToolReduction};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::error::HookError;
use super::event::{parse, shorten, whole};
use super::surroundings::Surroundings;
use crate::agents::Agent;
use crate::agents::journal::Row;

#[derive(Deserialize)]
struct Event {
    session: String,
    directory: PathBuf,
    call_id: String,
    tool: String,
    input: Value,
    output: String,
    #[serde(default)]
    spilled: Option<PathBuf>,
}

pub(super) async fn answer(
    agent: Agent,
    event: &[u8],
    reduction: &ToolReduction,
    surroundings: &Surroundings,
) -> Result<Answer, HookError> {
    let event: Event = parse(event)?;
    let (name, length) = (agent.name(), event.output.len());
    let row = Row::new(name, &event.session, &event.tool, length as u64);
    let paths = ["path", "filePath", "file_path"];
    if surroundings.reads_store(&event.directory, &event.input, &paths, &["command"]) {
        return Ok(Answer::of(None, row.read()));
    }
    if surroundings.is_own_hint(&event.output) {
        return Ok(Answer::of(None, row));
    }
    let session = reduction.session(&event.session);
    let call = ToolCall::new(&event.call_id, &event.tool, event.input.to_string());
    let spilled = spilled(agent, &event, surroundings);
    let shorter = shorten(&session, &call, whole(&event.output, spilled.as_deref())?).await?;
    // The agent's own excerpt may be shorter than the preview of the whole.
    let shorter = shorter.filter(|shorter| shorter.len() < event.output.len());
    Ok(match shorter {
        None => Answer::of(None, row),
        Some(output) => {
            let row = row.shortened(output.len());
            Answer::of(Some(json!({"output": output}).to_string()), row)
        }
    })
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
