//! Whether a provider would take a list of messages.
//!
//! Each check is written from what a provider documents or answers with status 400, not from how
//! the formats are read: it is what passes are held to.

mod anthropic;
mod gemini;
mod openai_chat;
mod responses;

use serde_json::Value;

pub(super) use anthropic::validate as anthropic;
pub(super) use gemini::validate as gemini;
pub(super) use openai_chat::validate as openai_chat;
pub(super) use responses::validate as responses;

/// A message that a provider would refuse, or that makes it refuse the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {message}: {problem}")]
#[non_exhaustive]
pub struct InvalidMessage {
    /// Its place in the list, from 0.
    pub message: usize,
    /// What is wrong with it. It may name ids and tools; content is never in it.
    pub problem: String,
}

fn invalid(message: usize, problem: impl Into<String>) -> InvalidMessage {
    InvalidMessage {
        message,
        problem: problem.into(),
    }
}

/// `Ok` if `holds`, else what is wrong.
fn require(holds: bool, problem: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem.into()) }
}

/// The text in a field that must be there.
fn text<'m>(value: &'m Value, field: &str) -> Result<&'m str, String> {
    value
        .get(field)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("`{field}` must be text"))
}

/// An id as an error shows it: some are very long.
fn shown(id: &str) -> String {
    let end = id.floor_char_boundary(64);
    if end < id.len() {
        format!("{:?}…", &id[..end])
    } else {
        format!("{id:?}")
    }
}

/// Content that is text, or a list of parts of which each keeps `rule`.
fn content(
    value: Option<&Value>,
    field: &str,
    rule: impl Fn(&Value) -> Result<(), String>,
) -> Result<(), String> {
    match value {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => {
            require(!parts.is_empty(), format!("`{field}` is an empty list"))?;
            parts.iter().try_for_each(rule)
        }
        _ => Err(format!("`{field}` must be text or a list of parts")),
    }
}
