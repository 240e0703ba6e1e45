//! Counts the tokens of a conversation. Known texts cost a hash of their bytes; JSON as a value becomes a text for it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use tokio::runtime::Handle;

use crate::format::{Conversation, PartRef, Piece};
use crate::report::CountKind;
use crate::rounds::unknown_with;
use crate::slots::Slots;
use crate::tokens::{Meter, Text};

/// If new texts have at least this many bytes in total, they are counted off the async thread:
/// about two milliseconds of work.
const LARGE: u64 = 32 * 1024;

/// Counts the tokens of what was read of a conversation, and of the schemas of `tools`, on a blocking thread if there are
/// many new texts. At most `limit` tokens are not counted if the bytes prove that they are no more.
pub(super) async fn count(
    meter: &Meter,
    conversation: &dyn Conversation,
    slots: &Slots<'_>,
    tools: &[Value],
    limit: Option<u64>,
) -> (u64, CountKind) {
    let tools = loaded(tools, conversation);
    let tools: Vec<_> = tools
        .iter()
        .map(|tool| Text::from(PartRef::Text(tool)))
        .collect();
    let texts = || slots.texts().chain(&tools);
    let bound = texts().fold(slots.overhead(), |sum, text| {
        sum.saturating_add(text.bound())
    });
    if meter.never_exceeds_bytes() && limit.is_some_and(|limit| bound <= limit) {
        return (bound, CountKind::UpperBound);
    }
    let new: Vec<_> = texts().filter(|text| meter.known(text).is_none()).collect();
    let bytes: u64 = new.iter().map(|text| text.bytes()).sum();
    if let Some(runtime) = Handle::try_current().ok().filter(|_| bytes >= LARGE) {
        let new: Vec<_> = new.into_iter().cloned().map(Text::into_owned).collect();
        let meter = meter.clone();
        // If this fails, they are counted here. The meter keeps the counts.
        let _ = runtime.spawn_blocking(move || meter.sum(new.iter())).await;
    }
    let tokens = slots.overhead().saturating_add(meter.sum(texts()));
    (tokens, CountKind::Counted)
}

/// Counts the tokens of a conversation and of the schemas of its tools.
pub(crate) fn count_tokens(meter: &Meter, conversation: &dyn Conversation, tools: &[Value]) -> u64 {
    let slots = Slots::of(conversation, 0, &HashMap::new());
    let tools = loaded(tools, conversation);
    let tools = tools.iter().map(|tool| Text::from(PartRef::Text(tool)));
    let tokens = meter.sum(slots.texts()).saturating_add(meter.sum(tools));
    slots.overhead().saturating_add(tokens)
}

/// The definitions of tools that the model is given: those with `defer_loading` only once a search
/// has loaded them.
fn loaded(tools: &[Value], conversation: &dyn Conversation) -> Vec<String> {
    let texts: Vec<String> = tools.iter().map(Value::to_string).collect();
    if !texts.iter().any(|text| text.contains("defer_loading")) {
        return texts;
    }
    let mut names = HashSet::new();
    for message in 0..conversation.len() {
        conversation.visit(message, &mut |piece| {
            if let Piece::Content(part) = piece
                && let Some(value) = unknown_with(part, "tool_reference")
            {
                referenced(&value, &mut names);
            }
        });
    }
    let is_loaded = |tool: &Value| {
        let mut places = [tool, &tool["function"]].into_iter();
        let name = places.clone().find_map(|place| place["name"].as_str());
        !places.any(|place| place["defer_loading"] == true)
            || name.is_some_and(|name| names.contains(name))
    };
    let given = tools.iter().filter(|tool| is_loaded(tool)).map(|tool| {
        let mut tool = tool.clone();
        if let Some(tools) = tool.get_mut("tools").and_then(Value::as_array_mut) {
            tools.retain(is_loaded);
        }
        tool.to_string()
    });
    given.collect()
}

/// Collects the names of tools to which references in `value` lead.
fn referenced(value: &Value, names: &mut HashSet<String>) {
    match value {
        Value::Object(fields) => {
            if value["type"] == "tool_reference"
                && let Some(name) = value["tool_name"].as_str()
            {
                names.insert(name.to_owned());
            }
            fields.values().for_each(|value| referenced(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| referenced(value, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::format::{Message, Messages, Plain};
    use crate::tokens::{CountTokens, Estimate};
    use crate::{Part, ToolCall};

    /// Counts one token for each byte, the maximum.
    struct Bytes;

    impl CountTokens for Bytes {
        fn count(&self, text: &str) -> u64 {
            text.len() as u64
        }

        fn never_exceeds_bytes(&self) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn c1_the_bound_is_reached_and_never_exceeded() {
        let call = ToolCall::new("a", "grep", r#"{"x":1}"#);
        let link = Part::Link {
            mime: None,
            url: "https://example.org/a.png".into(),
        };
        let parts = vec!["text".into(), Part::Json(json!({"a": 1})), link];
        let mut messages = vec![
            Message::user("go"),
            Message::calls(vec![call.clone()]),
            Message::tool(&call, parts, false),
        ];
        let conversation = Messages::new(Plain, &mut messages);
        let slots = Slots::of(&conversation, 0, &HashMap::new());
        let tools = [json!({"name": "grep"})];
        let counters: [(Arc<dyn CountTokens>, _); 2] = [
            (Arc::new(Bytes), CountKind::UpperBound),
            (Arc::new(Estimate), CountKind::Counted),
        ];
        for (counter, at_limit) in counters {
            let meter = Meter::new(counter);
            let exact = count_tokens(&meter, &conversation, &tools);
            for (limit, kind) in [(exact, at_limit), (exact - 1, CountKind::Counted)] {
                let counted = count(&meter, &conversation, &slots, &tools, Some(limit)).await;
                assert_eq!(counted, (exact, kind));
            }
        }
    }
}
