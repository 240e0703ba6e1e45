//! Answers the events that agents send to their hooks.

mod claude_code;
mod codex;
mod event;
mod gemini_cli;
mod surroundings;

use std::path::PathBuf;

use offcut::ToolReduction;
use serde_json::json;

use crate::agents::Agent;
use crate::agents::journal::Row;
use crate::failure::Failure;
use event::{Event, EventText, shorten};

pub use surroundings::Surroundings;

/// An answered event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text for stdout; `None` if the event passes unchanged.
    pub output: Option<String>,
    /// The result in the event, for the journal.
    pub row: Option<Row>,
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
) -> Result<Answer, Failure> {
    let event = &Event::parse(event)?;
    let wanted = agent.facts().event;
    if !wanted.is_empty() && event.hook_event_name != wanted {
        return match event.hook_event_name.is_empty() {
            true => Err(Failure::new("the event lacks its `hook_event_name`")),
            false => Ok(Answer::default()),
        };
    }
    let texts = match agent {
        Agent::ClaudeCode => claude_code::texts(event, surroundings),
        Agent::Codex => Vec::from_iter(codex::text(event)),
        Agent::GeminiCli => Vec::from_iter(gemini_cli::text(event, surroundings)),
        Agent::OpenCode | Agent::Pi => vec![plain_text(agent, event, surroundings)?],
    };
    let mut shortened = Vec::new();
    // One row for the whole result, however many texts it has.
    let mut sum: Option<Row> = None;
    for text in texts {
        let places = text.places.clone();
        let (shorter, row) = shorten(agent, event, text, reduction, surroundings).await?;
        shortened.extend(shorter.map(|shorter| (places, shorter)));
        match &mut sum {
            None => sum = Some(row),
            Some(sum) => {
                sum.before += row.before;
                sum.after += row.after;
            }
        }
    }
    let output = shortened.last().map(|(_, texts)| match agent {
        Agent::ClaudeCode => claude_code::output(event, &shortened),
        Agent::Codex => json!({"decision": "block", "reason": texts.concat()}),
        Agent::GeminiCli => json!({"decision": "deny", "reason": texts.concat()}),
        _ if event.tool_response.is_array() => json!({"output": texts}),
        _ => json!({"output": texts.concat()}),
    });
    Ok(Answer {
        output: output.map(|output| output.to_string()),
        row: sum,
    })
}

/// The directory in which results of an `event` must be stored, because the reader of `agent` may open
/// no other one outside the project. `None` if any directory will do. The store of `surroundings` is
/// not used.
pub fn store(agent: Agent, event: &[u8], surroundings: &Surroundings) -> Option<PathBuf> {
    if agent != Agent::GeminiCli {
        return None;
    }
    let event = Event::parse(event).ok()?;
    Some(gemini_cli::folder(&event, surroundings)?.join("store"))
}

/// The text of an event of an agent whose extension is ours, or a list of them.
fn plain_text(
    agent: Agent,
    event: &Event,
    surroundings: &Surroundings,
) -> Result<EventText, Failure> {
    let response = &event.tool_response;
    let list = response
        .as_array()
        .map_or(std::slice::from_ref(response), Vec::as_slice);
    let texts = list.iter().map(|text| text.as_str().map(str::to_owned));
    let texts = texts.collect::<Option<Vec<_>>>().ok_or_else(|| {
        Failure::new("the event's `tool_response` must be a text, or a list of texts")
    })?;
    let text = EventText::new(&event.tool_use_id, texts);
    let Some(named) = &event.spilled else {
        return Ok(text);
    };
    let file = || {
        let (file, starts, ends) = match agent {
            Agent::OpenCode => (
                surroundings.file_of_agent("tool-output", named)?,
                "tool_",
                "",
            ),
            _ => (surroundings.temporary_file(named)?, "pi-bash-", ".log"),
        };
        let name = file.file_name()?.to_str()?;
        (name.starts_with(starts) && name.ends_with(ends)).then_some(file)
    };
    Ok(text.of_file(file()))
}
