//! Anthropic: the results of all calls of an assistant turn come first in the next user turn, one
//! for each call.

use std::collections::HashSet;

use serde_json::Value;

use super::rules::{InvalidMessage, all_answered, answer, content, each, require, shown, text};

const UNANSWERED: &str = "has no result in the next turn";

pub(super) fn validate(messages: &[Value]) -> Result<(), InvalidMessage> {
    let mut turns = RoleTurns::default();
    each(messages, |at, message| {
        let role = text(message, "role")?;
        require(
            matches!(role, "user" | "assistant"),
            "`role` must be user or assistant",
        )?;
        require(
            at > 0 || role == "user",
            "the first message must be a user message",
        )?;
        turns.begin(at, role)?;
        let said = message.get("content");
        let is_last = at + 1 == messages.len() && role == "assistant";
        let is_empty = said.is_some_and(|said| {
            said.as_str() == Some("") || said.as_array().is_some_and(Vec::is_empty)
        });
        if is_empty {
            require(is_last, "`content` is empty")?;
            return Ok(());
        }
        content(said, "content", |block| shape(block, role))?;
        for block in said.and_then(Value::as_array).into_iter().flatten() {
            turns.take(at, block)?;
        }
        if said.is_some_and(Value::is_string) {
            turns.has_text = true;
        }
        Ok(())
    })?;
    all_answered(turns.open.first(), UNANSWERED)
}

/// Consecutive messages of one role, which are one turn.
#[derive(Default)]
struct RoleTurns<'m> {
    role: &'m str,
    ids: HashSet<&'m str>,
    /// The calls of the last assistant turn that have no result yet, and the message that holds
    /// each.
    open: Vec<(&'m str, usize)>,
    /// True if this turn has had something other than a result.
    has_text: bool,
}

impl<'m> RoleTurns<'m> {
    fn begin(&mut self, at: usize, role: &'m str) -> Result<(), InvalidMessage> {
        if at == 0 || role != self.role {
            if role == "assistant" {
                all_answered(self.open.first(), UNANSWERED)?;
            }
            (self.role, self.has_text) = (role, false);
        }
        Ok(())
    }

    fn take(&mut self, at: usize, block: &'m Value) -> Result<(), String> {
        match text(block, "type")? {
            "tool_use" => {
                let id = text(block, "id")?;
                require(
                    self.ids.insert(id),
                    format!("the id {} is used for two calls", shown(id)),
                )?;
                self.open.push((id, at));
            }
            "tool_result" => {
                let id = text(block, "tool_use_id")?;
                let problem = "no open call of the preceding assistant turn has the id";
                answer(&mut self.open, id, || format!("{problem} {}", shown(id)))?;
                require(
                    !self.has_text,
                    "results must come before everything else in a turn",
                )?;
            }
            _ => self.has_text = true,
        }
        Ok(())
    }
}

fn shape(block: &Value, role: &str) -> Result<(), String> {
    match (text(block, "type")?, role) {
        ("tool_use", "assistant") => {
            let is_safe = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
            let id = text(block, "id")?;
            let is_id = !id.is_empty() && id.bytes().all(is_safe);
            require(
                is_id,
                format!(
                    "the id {} must consist of letters, digits, `_` and `-`",
                    shown(id)
                ),
            )?;
            text(block, "name")?;
            require(
                block.get("input").is_some_and(Value::is_object),
                "`input` must be an object",
            )
        }
        ("tool_use", _) => Err("calls belong in assistant messages".to_owned()),
        ("tool_result", "user") => result(block),
        ("tool_result", _) => Err("results belong in user messages".to_owned()),
        ("thinking", _) => text(block, "thinking")
            .and(text(block, "signature"))
            .map(drop),
        _ => part(block),
    }
}

fn result(block: &Value) -> Result<(), String> {
    let said = block.get("content").filter(|said| !said.is_null());
    let parts = said
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let is_error = block
        .get("is_error")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    let is_text = |part: &Value| part.get("type").is_some_and(|kind| kind == "text");
    require(
        !is_error || parts.iter().all(is_text),
        "an error result must hold only text",
    )?;
    match said {
        Some(said) if !parts.is_empty() || !said.is_array() => content(Some(said), "content", part),
        _ => Ok(()),
    }
}

fn part(part: &Value) -> Result<(), String> {
    match text(part, "type")? {
        "text" => require(!text(part, "text")?.trim().is_empty(), "a text is empty"),
        "image" | "document" => require(
            part.get("source").is_some_and(Value::is_object),
            "`source` must be an object",
        ),
        _ => Ok(()),
    }
}
