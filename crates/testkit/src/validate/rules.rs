//! Checks shared by all providers.

use serde_json::Value;

/// A message that makes a provider reject the whole list of messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {message}: {problem}")]
#[non_exhaustive]
pub struct InvalidMessage {
    /// Index in the list, from 0.
    pub message: usize,
    /// The problem. May name ids and tools, but never contains content.
    pub problem: String,
}

pub(super) fn invalid(message: usize, problem: impl Into<String>) -> InvalidMessage {
    InvalidMessage {
        message,
        problem: problem.into(),
    }
}

/// A broken rule, and the message that breaks it if that is an earlier one than the message at hand.
pub(super) struct Broken {
    at: Option<usize>,
    problem: String,
}

impl From<InvalidMessage> for Broken {
    fn from(InvalidMessage { message, problem }: InvalidMessage) -> Self {
        let at = Some(message);
        Self { at, problem }
    }
}

impl From<String> for Broken {
    fn from(problem: String) -> Self {
        Self { at: None, problem }
    }
}

/// Checks each message by `rule`, which gets its index too.
pub(super) fn each<'m>(
    messages: &'m [Value],
    mut rule: impl FnMut(usize, &'m Value) -> Result<(), Broken>,
) -> Result<(), InvalidMessage> {
    let mut messages = messages.iter().enumerate();
    messages.try_for_each(|(at, message)| {
        rule(at, message).map_err(|broken| invalid(broken.at.unwrap_or(at), broken.problem))
    })
}

/// Takes the first of the `open` calls that is this one; fails with `problem` if there is none. Each is
/// open since a message.
pub(super) fn answer<T: PartialEq + Copy>(
    open: &mut Vec<(T, usize)>,
    call: T,
    problem: impl FnOnce() -> String,
) -> Result<(), String> {
    let at = open.iter().position(|(open, _)| *open == call);
    open.remove(at.ok_or_else(problem)?);
    Ok(())
}

/// Refuses the message of the first call that is still open, with `problem`.
pub(super) fn all_answered(
    first: Option<&(&str, usize)>,
    problem: &str,
) -> Result<(), InvalidMessage> {
    first.map_or(Ok(()), |(id, at)| {
        Err(invalid(*at, format!("the call {} {problem}", shown(id))))
    })
}

/// Returns `problem` as an error unless `holds` is true.
pub(super) fn require(holds: bool, problem: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem.into()) }
}

/// Returns the text of a required field.
pub(super) fn text<'m>(value: &'m Value, field: &str) -> Result<&'m str, String> {
    value
        .get(field)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("`{field}` must be a string"))
}

/// Shortens an id for an error, since some are very long.
pub(super) fn shown(id: &str) -> String {
    let end = id.floor_char_boundary(64);
    if end < id.len() {
        format!("{:?}…", &id[..end])
    } else {
        format!("{id:?}")
    }
}

/// Checks content that is text, or a list of parts that each satisfy `rule`.
pub(super) fn content(
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
        _ => Err(format!("`{field}` must be a string or a list of parts")),
    }
}
