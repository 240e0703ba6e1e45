//! L5: what a provider accepted before a pass, it accepts after it, and what a pass does not replace is as it was.

use std::collections::BTreeSet;

use serde_json::Value;

use super::wire::Wire;
use super::{Violation, require};

/// Whether a message is one that a provider of chat completions accepts, as far as a pass could change that.
pub(crate) fn is_valid(message: &Value) -> bool {
    let part_is_valid = |part: &Value| match part["type"].as_str() {
        Some("text") => part["text"].is_string(),
        Some("image_url") => part["image_url"]["url"].is_string(),
        other => other.is_some(),
    };
    let content_is_valid = match &message["content"] {
        Value::String(_) => true,
        Value::Array(parts) => !parts.is_empty() && parts.iter().all(part_is_valid),
        Value::Null => message["role"] == "assistant",
        _ => false,
    };
    let call_is_valid = |call: &Value| {
        let function = call["function"]["arguments"].is_string() && call["function"]["name"].is_string();
        let custom = call["custom"]["input"].is_string() && call["custom"]["name"].is_string();
        call["id"].is_string() && (function || custom)
    };
    let calls_are_valid = message
        .get("tool_calls")
        .is_none_or(|calls| calls.as_array().is_some_and(|calls| !calls.is_empty() && calls.iter().all(call_is_valid)));
    let answers = message["role"] != "tool" || message["tool_call_id"].is_string();
    content_is_valid && calls_are_valid && answers
}

/// Which messages are not as they were. Whatever else than content of results and arguments has changed breaks L5.
pub(crate) fn changed<F: Wire>(
    wire: F,
    before: &[F::Message],
    after: &[F::Message],
) -> Result<BTreeSet<usize>, Violation> {
    require(before.len() == after.len(), "L5", || format!("{} messages became {}", before.len(), after.len()))?;
    let mut changed = BTreeSet::new();
    for (at, (before, after)) in before.iter().zip(after).enumerate() {
        if before == after {
            continue;
        }
        changed.insert(at);
        let [before, after] = [wire.json(before), wire.json(after)];
        check_content(&before, &after).map_err(|why| Violation::new("L5", format!("message {at}: {why}")))?;
        require(!wire.is_valid(&before) || wire.is_valid(&after), "L5", || {
            format!("message {at} is not valid any more: {after}")
        })?;
        // As text: the order of keys is compared too.
        let [old, new] = [before, after].map(|mut message| {
            wire.blank(&mut message);
            message.to_string()
        });
        require(old == new, "L5", || format!("message {at}: {old}\nbecame {new}"))?;
    }
    Ok(changed)
}

/// Content that was an array of parts stays one, with the marks that its texts had.
fn check_content(before: &Value, after: &Value) -> Result<(), String> {
    let [old, new] = [&before["content"], &after["content"]];
    if old == new {
        return Ok(());
    }
    let is_same_shape = !old.is_array() || new.is_array();
    let marks = |content: &Value| -> Vec<Value> {
        let parts = content.as_array().into_iter().flatten().filter(|part| part["type"] == "text");
        parts.filter_map(|part| part.get("cache_control").cloned()).collect()
    };
    let [old_marks, new_marks] = [marks(old), marks(new)];
    match () {
        () if !is_same_shape => Err(format!("content that was an array became {new}")),
        () if old_marks.last() != new_marks.last() => Err(format!("cache marks {old_marks:?} became {new_marks:?}")),
        () => Ok(()),
    }
}

/// Which call each result answers, for results whose id is that of exactly one call.
pub(crate) fn pairs<F: Wire>(wire: F, messages: &[F::Message]) -> Vec<(usize, usize)> {
    let views: Vec<_> = messages.iter().map(|message| super::shadow::view(wire, message)).collect();
    let calls = |id: &String| -> Vec<usize> {
        let has = |at: &usize| views[*at].slot.is_none() && views[*at].ids.contains(id);
        (0..views.len()).filter(has).collect()
    };
    let results = views.iter().enumerate().filter(|(_, view)| view.slot.is_some());
    results
        .filter_map(|(at, view)| match calls(view.ids.first()?)[..] {
            [call] => Some((call, at)),
            _ => None,
        })
        .collect()
}
