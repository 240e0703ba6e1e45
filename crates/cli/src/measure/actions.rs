//! Texts that a call repeats verbatim: an edit's old text, and whole arguments of calls that change
//! something.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::needs::{Kind, Need};
use crate::evidence::{Read, Speaker, Use, unnumbered};

/// Arguments with an edit's old text.
const OLD: [&str; 7] = [
    "old_string",
    "old_str",
    "oldText",
    "old_text",
    "oldString",
    "old",
    "search",
];
/// Length in bytes of an argument that is a value rather than a text.
const MAX_VALUE: usize = 200;
const MIN_VALUE: usize = 3;

/// Names of tools that change something.
#[allow(
    clippy::expect_used,
    reason = "a constant pattern, compiled by every test"
)]
static CHANGES: LazyLock<Regex> = LazyLock::new(|| {
    let words = "edit|write|create|update|delete|remove|insert|replace|patch|apply|send|book|cancel|\
                 pay|order|add|set|move|commit|push|post|put|assign|exchange|return|modify";
    Regex::new(&format!("(?i)(?:^|[^a-z])(?:{words})")).expect("a regular expression")
});

/// For each turn, what its calls need of earlier messages, with the messages that hold it.
pub(super) fn of(read: &Read) -> Vec<Vec<Need>> {
    let mut before: Vec<String> = Vec::new();
    let mut turns = Vec::new();
    for message in &read.messages {
        if message.speaker == Speaker::Assistant {
            let mut wanted: Vec<(Kind, String)> = Vec::new();
            for call in &message.calls {
                let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else {
                    continue;
                };
                wanted_by(&call.name, &arguments, &mut wanted);
            }
            wanted.sort();
            wanted.dedup();
            let needs = wanted.into_iter().filter_map(|(kind, text)| {
                let results = holders(&before, &text);
                (!results.is_empty()).then_some(Need {
                    kind,
                    what: Use { text, results },
                })
            });
            turns.push(needs.collect());
        }
        before.push(unnumbered(&message.written.join("\n")));
    }
    turns
}

/// Indexes of the texts that hold `text`.
fn holders(texts: &[String], text: &str) -> Vec<usize> {
    let all = texts.iter().enumerate();
    all.filter(|(_, held)| held.contains(text))
        .map(|(at, _)| at)
        .collect()
}

fn wanted_by(tool: &str, arguments: &Value, wanted: &mut Vec<(Kind, String)>) {
    let changes = CHANGES.is_match(tool);
    let mut open = vec![("", arguments)];
    while let Some((field, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                open.extend(fields.iter().map(|(field, value)| (field.as_str(), value)));
            }
            Value::Array(values) => open.extend(values.iter().map(|value| (field, value))),
            Value::String(text) if OLD.contains(&field) && changes => {
                let old = unnumbered(text.trim_matches('\n'));
                if old.len() >= MIN_VALUE {
                    wanted.push((Kind::Edit, old));
                }
            }
            Value::String(text) if changes && is_value(text) => {
                wanted.push((Kind::Action, text.clone()));
            }
            Value::Number(number) if changes && number.to_string().len() >= MIN_VALUE => {
                wanted.push((Kind::Action, number.to_string()));
            }
            Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }
}

/// Returns true for an id, a path, a number or a date: one word with a digit, `_`, `/`, `.` or `-`.
fn is_value(text: &str) -> bool {
    (MIN_VALUE..=MAX_VALUE).contains(&text.len())
        && !text.contains(char::is_whitespace)
        && text.contains(|c: char| c.is_ascii_digit() || matches!(c, '_' | '/' | '.' | '-'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_that_change_something_need_their_values_and_old_texts() {
        let wanted = |tool, arguments: Value| {
            let mut wanted = Vec::new();
            wanted_by(tool, &arguments, &mut wanted);
            wanted.sort();
            wanted
        };
        let edit = json!({"file_path": "/a/b.rs", "old_string": "let a = 1;\n", "new_string": "let a = 2;\n"});
        assert_eq!(
            wanted("Edit", edit.clone()),
            [
                (Kind::Edit, "let a = 1;".to_owned()),
                (Kind::Action, "/a/b.rs".to_owned())
            ]
        );
        assert_eq!(wanted("Read", edit), []);
        let several = json!({"edits": [{"oldText": "one two"}, {"oldText": "three"}]});
        assert_eq!(wanted("edit", several).len(), 2);
        let booking = json!({"reservation_id": "4WQ150", "passengers": 2, "price": 1450, "note": "by the window"});
        assert_eq!(
            wanted("book_reservation", booking),
            [
                (Kind::Action, "1450".to_owned()),
                (Kind::Action, "4WQ150".to_owned())
            ]
        );
    }
}
