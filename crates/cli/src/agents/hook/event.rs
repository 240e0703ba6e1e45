//! The parts that the events of all agents share: parsing, and truncating one text.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use offcut::{Chunk, ErrorChain, ToolCall, ToolError, ToolOutput, ToolReduction};
use serde::de::DeserializeOwned;

use super::error::HookError;

/// Number of bytes that are read at once.
const CHUNK: u64 = 64 * 1024;

/// Parses an event. Half a surrogate pair, which agents leave where they cut a text, is read as a
/// replacement character.
pub(super) fn parse<T: DeserializeOwned>(event: &[u8]) -> Result<T, HookError> {
    let error = match serde_json::from_slice(event) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    let mended = str::from_utf8(event).ok().and_then(mend_surrogates);
    mended
        .and_then(|mended| serde_json::from_str(&mended).ok())
        .ok_or_else(|| HookError::because("the event is not the JSON that was expected", error))
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
    while let Some(next) = memchr(b'\\', bytes, at) {
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

fn memchr(byte: u8, bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    Some(from + rest.iter().position(|other| *other == byte)?)
}

/// The session of a conversation. A subagent has one of its own.
pub(super) fn session(
    reduction: &ToolReduction,
    conversation: &str,
    subagent: Option<&str>,
) -> ToolReduction {
    match subagent {
        Some(agent) => reduction.session(&format!("{conversation}-{agent}")),
        None => reduction.session(conversation),
    }
}

/// Truncates one result. `None` if it stays unchanged.
pub(super) async fn shorten(
    reduction: &ToolReduction,
    call: &ToolCall,
    result: impl Into<ToolOutput>,
) -> Result<Option<String>, HookError> {
    let truncated = reduction
        .truncate(call, result)
        .await
        .map_err(|error| HookError::because("a result could not be stored", error))?;
    if let Some(error) = &truncated.interrupted {
        let problem = format!("a result could not be read: {}", ErrorChain(error));
        return Err(HookError::new(problem));
    }
    let mut decisions = truncated.report.decisions.iter();
    if let Some(error) = decisions.find_map(|decision| decision.error.as_ref()) {
        return Err(HookError::new(format!(
            "a result could not be stored: {error}"
        )));
    }
    Ok(truncated.report.is_change().then(|| truncated.text()))
}

/// All of a result: the file to which an agent has spilled it, read piece by piece, or else its `text`.
pub(super) fn whole(text: &str, spilled: Option<&Path>) -> Result<ToolOutput, HookError> {
    spilled.map_or_else(|| Ok(text.into()), stream)
}

/// Opens a file as a result that is read piece by piece.
pub(super) fn stream(file: &Path) -> Result<ToolOutput, HookError> {
    let mut file = File::open(file)
        .map_err(|error| HookError::because("the spilled output can't be opened", error))?;
    let mut is_over = false;
    let chunks = std::iter::from_fn(move || {
        let mut chunk = Vec::new();
        let read = (&mut file).take(CHUNK).read_to_end(&mut chunk);
        let next = match read {
            _ if is_over => None,
            Ok(0) => None,
            Ok(_) => Some(Ok(Chunk::Bytes(chunk.into()))),
            Err(error) => Some(Err(ToolError::new("it can't be read").with_source(error))),
        };
        is_over = !matches!(next, Some(Ok(_)));
        next
    });
    Ok(ToolOutput::stream(futures_util::stream::iter(chunks)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_a_replacement_character() {
        let cases = [
            (r#"{"a":"x\ud83d"}"#, json!({"a": "x\u{fffd}"})),
            (r#"["\ud83d\ude00 \ude00"]"#, json!(["😀 \u{fffd}"])),
            (r#"["\\ud83d \ud83d\n"]"#, json!(["\\ud83d \u{fffd}\n"])),
            (r#"["\ud83d\ud83d\ude00"]"#, json!(["\u{fffd}😀"])),
        ];
        for (event, expected) in cases {
            assert_eq!(parse::<Value>(event.as_bytes()).unwrap(), expected);
        }
        parse::<Value>(b"{\"a\":").unwrap_err();
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes: Vec<u8>) {
            let _ = parse::<Value>(&bytes);
        }

        #[test]
        fn valid_json_is_not_mended(text: String) {
            let spelled = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(mend_surrogates(&spelled), None);
        }
    }
}
