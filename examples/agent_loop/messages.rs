//! What the model, the tally and the screen all have to know of messages.

use offcut::format::{Message, Messages, Plain};
use offcut::{Part, ToolReduction};
use serde_json::Value;

/// The name of the reader of stored content, as hints give it by default.
pub(crate) const READER: &str = "read_file";

/// The tokens of a conversation, by the counter that the reduction uses.
pub(crate) fn count_tokens(
    reduction: &ToolReduction,
    messages: &[Message],
    tools: &[Value],
) -> u64 {
    reduction.count_tokens(&Messages::new(&Plain, &mut messages.to_vec()), tools)
}

/// The text of a result that is one text.
pub(crate) fn text_of(parts: &[Part]) -> Option<&str> {
    match parts {
        [Part::Text(text)] => Some(text),
        _ => None,
    }
}
