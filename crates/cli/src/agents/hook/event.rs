//! The fields of all agents' events, and the one way of their texts.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use futures_util::stream;
use offcut::hint::Hint;
use offcut::{Chunk, ErrorChain, Part, ToolCall, ToolError, ToolOutput, ToolReduction};
use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::Value;

use super::surroundings::Surroundings;
use crate::agents::Agent;
use crate::agents::journal::Row;
use crate::failure::{Failure, OrFail as _};

/// Number of bytes that are read at once.
const CHUNK: u64 = 64 * 1024;

/// An event: a tool has answered a call.
///
/// For agents whose extensions are ours, `{"session_id": …, "cwd": …, "tool_use_id": …, "tool_name": …, "tool_input":
/// {…}, "tool_response": …}` is answered by `{"output": …}`: a text by a text, a list of texts by a list of as many,
/// or of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub(super) hook_event_name: String,
    pub(super) session_id: String,
    /// The subagent that has called, if one has.
    pub(super) agent_id: Option<String>,
    pub(super) cwd: PathBuf,
    pub(super) timestamp: Value,
    pub(super) tool_name: String,
    pub(super) tool_input: Value,
    pub(super) tool_response: Value,
    pub(super) tool_use_id: String,
    pub(super) transcript_path: Option<PathBuf>,
    /// The file to which the agent has written all of the output, if it says so in a field of its own.
    pub(super) spilled: Option<PathBuf>,
}

impl Event {
    /// Parses an event. Half a surrogate pair, which agents leave where they cut a text, is read as a
    /// replacement character.
    pub(super) fn parse(event: &[u8]) -> Result<Self, Failure> {
        let parsed = serde_json::from_slice(event).or_else(|error| {
            let mended = str::from_utf8(event).ok().and_then(mend_surrogates);
            mended
                .and_then(|mended| serde_json::from_str(&mended).ok())
                .ok_or(error)
        });
        parsed.or_fail("the event is not the JSON that was expected")
    }
}

/// Texts of an event, which the model is shown, and which share a limit.
pub(super) struct EventText {
    /// The id of their call.
    pub(super) id: String,
    pub(super) texts: Vec<String>,
    /// JSON pointers to their places in the response, for an agent that shows more than one result.
    pub(super) places: Vec<String>,
    /// Length in bytes of what the agent would show of them.
    pub(super) shown: usize,
    /// The file to which the agent has written all of it.
    pub(super) spilled: Option<PathBuf>,
    /// Maximum length of the preview in bytes, in place of an excerpt of the agent's own.
    pub(super) excerpt: Option<usize>,
    /// True if the agent does not let a hook replace it.
    pub(super) stays: bool,
    /// The lines that the agent has put around it.
    pub(super) around: Option<[&'static str; 2]>,
}

impl EventText {
    /// Texts of which the agent would show everything.
    pub(super) fn new(id: &str, texts: Vec<String>) -> Self {
        Self {
            id: id.to_owned(),
            shown: texts.iter().map(String::len).sum(),
            texts,
            places: Vec::new(),
            spilled: None,
            excerpt: None,
            stays: false,
            around: None,
        }
    }

    /// The texts as a part of what the agent has written to a file. `None` for one that may not be read: it is not in
    /// the place of such files.
    pub(super) fn of_file(mut self, file: Option<PathBuf>) -> Self {
        self.spilled = file;
        // Stored as if it were all, the part would hide the rest, and the agent says where that is.
        self.stays |= self.spilled.is_none();
        self
    }
}

/// Shortens texts of an event of `agent`, and returns their row in the journal too. `None` if they stay unchanged. Many
/// texts may have become one. `reduction` is one for all sessions; the event names its own.
pub(super) async fn shorten(
    agent: Agent,
    event: &Event,
    text: EventText,
    reduction: &ToolReduction,
    surroundings: &Surroundings,
) -> Result<(Option<Vec<String>>, Row), Failure> {
    let (tool, input) = (&event.tool_name, &event.tool_input);
    let mut row = Row::new(
        agent.facts().name,
        &event.session_id,
        tool,
        text.shown as u64,
    );
    let is_read = surroundings.reads_store(&event.cwd, input);
    if is_read {
        (row.before, row.reads) = (0, 1);
    }
    let transcript = event.transcript_path.as_deref();
    row.transcript = transcript.and_then(|path| surroundings.file_of_agent("projects", path));
    let stays = text.stays || !reduction.truncates(tool);
    if is_read || stays || surroundings.is_own_hint(&text.texts.join("\n")) {
        return Ok((None, row));
    }
    let session = match &event.agent_id {
        // A subagent has a session of its own.
        Some(subagent) => format!("{}-{subagent}", event.session_id),
        None => event.session_id.clone(),
    };
    let mut reduction = reduction.session(&session);
    if let Some(excerpt) = text.excerpt {
        reduction = reduction.with_previews_of_at_most(excerpt);
    }
    let given = text.texts.len();
    let whole = match &text.spilled {
        Some(file) => content(file)?,
        None => {
            let whole = |one: String| match text.around {
                None => Part::Text(one),
                Some(around) => Part::Text(marked(&one, around)),
            };
            ToolOutput::parts(text.texts.into_iter().map(whole).collect())
        }
    };
    let call = ToolCall::new(text.id, tool, input.to_string());
    let mut shorter = truncate(&reduction, &call, whole, given).await?;
    if let (Some(shorter), Some(around)) = (&mut shorter, text.around) {
        for text in shorter {
            *text = put_around(text, around);
        }
    }
    let length = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    // The agent may show less than the preview of the whole.
    let shorter = shorter.filter(|shorter| text.excerpt.is_some() || length(shorter) < text.shown);
    if let Some(shorter) = &shorter {
        row.after = length(shorter) as u64;
    }
    Ok((shorter, row))
}

/// The text to store: the agent's own reader does not put `around` around what it reads.
fn marked(text: &str, [before, after]: [&str; 2]) -> String {
    // JSON between other lines would be none, and lose its preview.
    match text.trim_start().starts_with(['{', '[']) {
        true => text.to_owned(),
        false => [before, text, after].concat(),
    }
}

/// Puts `around`, of which parts are in the text, around the preview of a hint, or around a text that is none.
fn put_around(text: &str, [before, after]: [&str; 2]) -> String {
    let enclosed = |text: &str| {
        let text = text.replace(before.trim(), "").replace(after.trim(), "");
        [before, &text, after].concat()
    };
    match Hint::parse(text) {
        None => enclosed(text),
        Some(mut hint) => {
            hint.preview = enclosed(&hint.preview);
            hint.render()
        }
    }
}

/// Replaces each `\ud800` to `\udfff` that is not part of a pair by `\ufffd`.
fn mend_surrogates(json: &str) -> Option<String> {
    // A pair, a half of one, or another escape sequence.
    const ESCAPES: &str =
        r"(?i)\\(?:ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(ud[89a-f][0-9a-f]{2})|[^\n])";
    let escapes = Regex::new(ESCAPES).ok()?;
    let mended = escapes.replace_all(json, |found: &Captures<'_>| match found.get(1) {
        Some(_) => r"\ufffd".to_owned(),
        None => found[0].to_owned(),
    });
    Some(mended.into_owned())
}

/// Truncates one result of `given` texts, and returns no more. `None` if it stays unchanged.
async fn truncate(
    reduction: &ToolReduction,
    call: &ToolCall,
    result: ToolOutput,
    given: usize,
) -> Result<Option<Vec<String>>, Failure> {
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
    let is_change = truncated.report.is_change();
    let texts = truncated.parts.into_iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    Ok(is_change.then(|| match texts.len() > given {
        // A page of stored content may stand below what its reader says.
        true => vec![texts.concat()],
        false => texts,
    }))
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
            prop_assert_eq!(mend_surrogates(&spelled), Some(spelled));
        }
    }
}
