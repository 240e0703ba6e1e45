//! Old texts of edits, which a call repeats verbatim.

use std::sync::LazyLock;

use offcut::format::Message;
use regex::Regex;
use serde_json::Value;

use crate::evidence::{Kind, Need, Read, each_string, pattern, unnumbered};

/// Arguments with an edit's old text.
const OLD: &str = "old_string old_str oldText old_text oldString old search";
/// Minimum length in bytes of a text that counts.
const MIN_LENGTH: usize = 3;

/// Names of tools that change something.
static CHANGES: LazyLock<Regex> = LazyLock::new(|| {
    let words = "edit|write|create|update|delete|remove|insert|replace|patch|apply|send|book|cancel|\
                 pay|order|add|set|move|commit|push|post|put|assign|exchange|return|modify";
    pattern(&format!("(?i)(?:^|[^a-z])(?:{words})"))
});

/// For each turn, what its calls need of earlier messages, with the messages that hold it.
pub(super) fn of(read: &Read<'_>) -> Vec<Vec<Need>> {
    let mut before: Vec<String> = Vec::new();
    let mut turns = Vec::new();
    for message in &read.messages {
        if let Message::Assistant { calls, .. } = message.message {
            let mut wanted: Vec<String> = Vec::new();
            for call in calls {
                if CHANGES.is_match(&call.name)
                    && let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments)
                {
                    each_string("", &arguments, &mut |field, text| {
                        let old = unnumbered(text.trim_matches('\n'));
                        if OLD.split(' ').any(|name| name == field) && old.len() >= MIN_LENGTH {
                            wanted.push(old);
                        }
                    });
                }
            }
            wanted.sort();
            wanted.dedup();
            let holders = |text: &String| {
                let all = before.iter().enumerate();
                let holders = all.filter(|(_, held)| held.contains(text));
                holders.map(|(at, _)| at).collect::<Vec<usize>>()
            };
            let needs = wanted.into_iter().map(|text| Need {
                kind: Kind::Edit,
                holders: holders(&text),
                text,
            });
            let needs = needs.filter(|need| !need.holders.is_empty());
            turns.push(needs.collect());
        }
        before.push(unnumbered(&message.written.join("\n")));
    }
    turns
}

#[cfg(test)]
mod tests {
    use offcut::ToolCall;

    use super::*;

    #[test]
    fn calls_that_change_something_need_their_old_texts() {
        let needed = |tool: &str, arguments: &str| -> Vec<String> {
            let look = ToolCall::new("a", "look", "{}");
            let messages = [
                Message::calls(vec![look.clone()]),
                Message::tool(&look, vec!["12→let a = 1;\none two\nthree".into()], false),
                Message::calls(vec![ToolCall::new("b", tool, arguments)]),
            ];
            let mut turns = of(&Read::of(&messages));
            let needs = turns.pop().unwrap().into_iter();
            needs.map(|need| need.text).collect()
        };
        let edit = r#"{"file_path": "/a/b.rs", "old_string": "let a = 1;\n", "new_string": "let a = 2;\n"}"#;
        assert_eq!(needed("Edit", edit), ["let a = 1;"]);
        assert_eq!(needed("Read", edit), [""; 0]);
        let several =
            r#"{"edits": [{"oldText": "one two"}, {"oldText": "three"}, {"oldText": "t"}]}"#;
        assert_eq!(needed("edit", several), ["one two", "three"]);
    }
}
