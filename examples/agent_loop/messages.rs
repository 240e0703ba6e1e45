//! Helpers for messages, shared by the model, the tally and the output.

use offcut::format::{Message, Messages, Plain};
use offcut::{Part, ToolReduction};
use serde_json::Value;

/// The name of the reader of stored content, as hints give it by default.
pub(crate) const READER: &str = "read_file";

/// Counts the tokens of a conversation with the reduction's counter.
pub(crate) fn count_tokens(
    reduction: &ToolReduction,
    messages: &[Message],
    tools: &[Value],
) -> u64 {
    reduction.count_tokens(&Messages::new(Plain, &mut messages.to_vec()), tools)
}

/// Returns the text of a result that consists of one text.
pub(crate) fn text_of(parts: &[Part]) -> Option<&str> {
    match parts {
        [Part::Text(text)] => Some(text),
        _ => None,
    }
}
