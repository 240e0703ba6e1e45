//! Names for messages in formats that are not supported, for better errors.

use offcut::format::foreign_format;
use serde_json::Value;

/// Formats that are supported, for errors.
pub(crate) const READ: &str = "supported are chat completions, OpenAI Responses, Anthropic messages and Gemini contents (lists, bodies, \
logs of requests, batch files), and sessions of Claude Code, Codex, pi, Gemini CLI, SWE-agent and ATIF. \
Convert another log to a JSON list of chat-completions messages, [{\"role\": \"user\", \"content\": \"…\"}, …]; \
see \"Transcripts\" in the README of offcut-cli";

/// Maximum depth at which lists of messages are sought.
const DEPTH: usize = 3;
/// Fields that hold messages, or wrap what holds them.
const HOLDERS: &str =
    "messages input output contents body request inputs outputs values params observations";

/// Names the format of messages that resemble a supported one but are in another.
pub(crate) fn of_messages(documents: &[Value]) -> Option<&'static str> {
    documents
        .iter()
        .find_map(|document| inside(document, DEPTH))
}

fn inside(value: &Value, depth: usize) -> Option<&'static str> {
    if let Value::Array(several) = value {
        return several.iter().find_map(|one| match one {
            // LangSmith has lists in lists.
            Value::Array(_) if depth > 0 => inside(one, depth - 1),
            _ => foreign_format(one).or_else(|| inside(one, depth.checked_sub(1)?)),
        });
    }
    let held = HOLDERS.split(' ').filter_map(|field| value.get(field));
    let mut held = held.filter(|inner| inner.is_object() || inner.is_array());
    held.find_map(|inner| inside(inner, depth.checked_sub(1)?))
}
