//! Answers the events that agents send to their hooks.

mod claude_code;
mod codex;
mod gemini_cli;
mod surroundings;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use futures_util::stream;
use offcut::{Chunk, ErrorChain, ToolCall, ToolError, ToolOutput, ToolReduction};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agents::Agent;
use crate::agents::journal::Row;
use crate::failure::{Failure, OrFail as _};

pub use surroundings::Surroundings;

/// Number of bytes that are read at once.
const CHUNK: u64 = 64 * 1024;

/// An answered event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text for stdout; `None` if the event passes unchanged.
    pub output: Option<String>,
    /// The results in the event, for the journal.
    pub rows: Vec<Row>,
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
    let hook = &Hook {
        agent,
        reduction,
        surroundings,
    };
    let wanted = agent.facts().event;
    if !wanted.is_empty() && event.hook_event_name != wanted {
        return match event.hook_event_name.is_empty() {
            true => Err(Failure::new("the event lacks its `hook_event_name`")),
            false => Ok(Answer::default()),
        };
    }
    let text = match agent {
        Agent::ClaudeCode => return claude_code::answer(event, hook).await,
        Agent::Codex => codex::text(event),
        Agent::GeminiCli => gemini_cli::text(event, surroundings),
        Agent::OpenCode | Agent::Pi => Some(plain_text(agent, event, surroundings)?),
    };
    let Some(text) = text else {
        return Ok(Answer::default());
    };
    let (shorter, row) = hook.shorten(event, text).await?;
    let output = shorter.map(|shorter| match agent {
        Agent::Codex => json!({"decision": "block", "reason": shorter}),
        Agent::GeminiCli => json!({"decision": "deny", "reason": shorter}),
        _ => json!({"output": shorter}),
    });
    Ok(Answer {
        output: output.map(|output| output.to_string()),
        rows: vec![row],
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

/// An event: a tool has answered a call.
///
/// For agents whose extensions are ours, `{"session_id": …, "cwd": …, "tool_use_id": …, "tool_name": …, "tool_input":
/// {…}, "tool_response": …}` is answered by `{"output": …}`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    hook_event_name: String,
    session_id: String,
    /// The subagent that has called, if one has.
    agent_id: Option<String>,
    cwd: PathBuf,
    timestamp: Value,
    tool_name: String,
    tool_input: Value,
    tool_response: Value,
    tool_use_id: String,
    transcript_path: Option<PathBuf>,
    /// The file to which the agent has written all of the output, if it says so in a field of its own.
    spilled: Option<PathBuf>,
}

impl Event {
    /// Parses an event. Half a surrogate pair, which agents leave where they cut a text, is read as a
    /// replacement character.
    fn parse(event: &[u8]) -> Result<Self, Failure> {
        let parsed = serde_json::from_slice(event).or_else(|error| {
            let mended = str::from_utf8(event).ok().and_then(mend_surrogates);
            mended
                .and_then(|mended| serde_json::from_str(&mended).ok())
                .ok_or(error)
        });
        parsed.or_fail("the event is not the JSON that was expected")
    }
}

/// A text of an event, which the model is shown.
struct EventText {
    /// The id of its call.
    id: String,
    text: String,
    /// Length in bytes of what the agent would show of it.
    shown: usize,
    /// The file to which the agent has written all of it, as far as it may be read.
    spilled: Option<PathBuf>,
    /// Maximum length of the preview in bytes, in place of an excerpt of the agent's own.
    excerpt: Option<usize>,
    /// True if the agent does not let a hook replace it.
    stays: bool,
}

impl EventText {
    /// A text of which the agent would show everything.
    fn new(id: &str, text: String) -> Self {
        Self {
            id: id.to_owned(),
            shown: text.len(),
            text,
            spilled: None,
            excerpt: None,
            stays: false,
        }
    }
}

/// The text of an event of an agent whose extension is ours.
fn plain_text(
    agent: Agent,
    event: &Event,
    surroundings: &Surroundings,
) -> Result<EventText, Failure> {
    let Value::String(text) = &event.tool_response else {
        return Err(Failure::new("the event's `tool_response` must be a text"));
    };
    // A file is read only in the place in which the agent puts such files.
    let spilled = event.spilled.as_deref().and_then(|named| {
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
    });
    Ok(EventText {
        spilled,
        ..EventText::new(&event.tool_use_id, text.clone())
    })
}

/// The hook of an agent.
struct Hook<'h> {
    agent: Agent,
    /// One for all sessions; an event names its own.
    reduction: &'h ToolReduction,
    surroundings: &'h Surroundings,
}

impl Hook<'_> {
    /// Shortens a `text` of an event, and returns its row in the journal too. `None` if it stays unchanged.
    async fn shorten(
        &self,
        event: &Event,
        text: EventText,
    ) -> Result<(Option<String>, Row), Failure> {
        let (tool, input) = (&event.tool_name, &event.tool_input);
        let agent = self.agent.facts().name;
        let mut row = Row::new(agent, &event.session_id, tool, text.shown as u64);
        row.is_read = self.surroundings.reads_store(&event.cwd, input);
        if row.is_read || text.stays || self.surroundings.is_own_hint(&text.text) {
            return Ok((None, row));
        }
        let session = match &event.agent_id {
            // A subagent has a session of its own.
            Some(subagent) => format!("{}-{subagent}", event.session_id),
            None => event.session_id.clone(),
        };
        let mut reduction = self.reduction.session(&session);
        if let Some(excerpt) = text.excerpt {
            reduction = reduction.with_previews_of_at_most(excerpt);
        }
        let whole = match &text.spilled {
            Some(file) => content(file)?,
            None => text.text.into(),
        };
        let call = ToolCall::new(text.id, tool, input.to_string());
        let shorter = truncate(&reduction, &call, whole).await?;
        // The agent may show less than the preview of the whole.
        let shorter =
            shorter.filter(|shorter| text.excerpt.is_some() || shorter.len() < text.shown);
        if let Some(shorter) = &shorter {
            row.after = shorter.len() as u64;
        }
        Ok((shorter, row))
    }
}

/// Replaces each `\ud800` to `\udfff` that is not part of a pair by `\ufffd`. `None` if there is
/// none.
fn mend_surrogates(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut mended, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(skipped) = json.get(at..).and_then(|rest| rest.find('\\')) {
        let next = at + skipped;
        at = match unit(next) {
            None => next + 2,
            Some(0xD800..=0xDBFF) if matches!(unit(next + 6), Some(0xDC00..=0xDFFF)) => next + 12,
            Some(0xD800..=0xDFFF) => {
                mended += json.get(copied..next)?;
                mended += "\\ufffd";
                copied = next + 6;
                copied
            }
            Some(_) => next + 6,
        };
    }
    (copied > 0).then(|| mended + &json[copied..])
}

/// Truncates one result. `None` if it stays unchanged.
async fn truncate(
    reduction: &ToolReduction,
    call: &ToolCall,
    result: ToolOutput,
) -> Result<Option<String>, Failure> {
    let truncated = reduction.truncate(call, result).await;
    let truncated = truncated.or_fail("a result could not be stored")?;
    if let Some(error) = &truncated.interrupted {
        let problem = format!("a result could not be read: {}", ErrorChain(error));
        return Err(Failure::new(problem));
    }
    let mut decisions = truncated.report.decisions.iter();
    if let Some(error) = decisions.find_map(|decision| decision.error.as_ref()) {
        let problem = format!("a result could not be stored: {error}");
        return Err(Failure::new(problem));
    }
    Ok(truncated.report.is_change().then(|| truncated.text()))
}

/// The content of a file as a result that is read piece by piece.
fn content(file: &Path) -> Result<ToolOutput, Failure> {
    let mut file = File::open(file).or_fail("the spilled output can't be opened")?;
    let chunks = std::iter::from_fn(move || {
        let mut chunk = Vec::new();
        match (&mut file).take(CHUNK).read_to_end(&mut chunk) {
            Ok(0) => None,
            Ok(_) => Some(Ok(Chunk::Bytes(chunk.into()))),
            Err(error) => Some(Err(ToolError::new("it can't be read").with_source(error))),
        }
    });
    Ok(ToolOutput::stream(stream::iter(chunks)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_a_replacement_character() {
        let cases = [
            (r"x\ud83d", "x\u{fffd}"),
            (r"\ud83d\ude00 \ude00", "😀 \u{fffd}"),
            (r"\\ud83d \ud83d\n", "\\ud83d \u{fffd}\n"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        ];
        for (spelled, expected) in cases {
            let event = format!(r#"{{"tool_name": "bash", "tool_response": "{spelled}"}}"#);
            let event = Event::parse(event.as_bytes()).unwrap();
            assert_eq!(event.tool_response, expected);
        }
        Event::parse(b"{\"tool_name\":").unwrap_err();
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes: Vec<u8>) {
            let _ = Event::parse(&bytes);
        }

        #[test]
        fn valid_json_is_not_mended(text: String) {
            let spelled = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(mend_surrogates(&spelled), None);
        }
    }
}
