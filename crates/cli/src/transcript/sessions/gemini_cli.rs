//! Sessions of Gemini CLI (`~/.gemini/tmp/…/chats/session-*.jsonl`, formerly `.json`): records of
//! changes, whose final state is the conversation.

use offcut::format::{Message, WireFormat};
use serde_json::{Value, json};

use crate::transcript::fields::{items, text};
use crate::transcript::messages;

/// Looks for a header with these two fields, which earlier versions wrote around all messages.
pub(super) fn is_session(records: &[Value]) -> bool {
    let is_head =
        |record: &Value| record.get("sessionId").is_some() && record.get("projectHash").is_some();
    records.iter().take(8).any(is_head)
}

/// Reads the transcript in the form in which it is sent.
pub(super) fn read(records: &[Value]) -> Vec<Vec<Message>> {
    let contents: Vec<Value> = state(records).into_iter().flat_map(sent).collect();
    vec![messages::read(WireFormat::Gemini, &contents)]
}

/// Applies all records and returns the messages that are left: a message that comes again replaces
/// itself.
fn state(records: &[Value]) -> Vec<&Value> {
    let mut messages: Vec<&Value> = Vec::new();
    for record in records {
        let of_set = record.get("$set").unwrap_or(record);
        if let Some(rewound_to) = record.get("$rewindTo") {
            let at = messages
                .iter()
                .position(|message| message.get("id") == Some(rewound_to));
            messages.truncate(at.unwrap_or_default());
        } else if record.get("id").is_some_and(Value::is_string) {
            put(&mut messages, record);
        } else if of_set.get("messages").is_some_and(Value::is_array) {
            if record.get("$set").is_some() {
                messages.clear();
            }
            for message in items(of_set, "messages") {
                put(&mut messages, message);
            }
        }
    }
    messages
}

fn put<'r>(messages: &mut Vec<&'r Value>, message: &'r Value) {
    // Records mostly change recent messages.
    let known = messages
        .iter()
        .rposition(|known| known.get("id") == message.get("id"));
    match known.and_then(|at| messages.get_mut(at)) {
        Some(known) => *known = message,
        None => messages.push(message),
    }
}

/// Converts a message to the contents that are sent: a turn of the model, and the results of its
/// calls.
fn sent(message: &Value) -> Vec<Value> {
    let said = parts(&message["content"]);
    match text(message, "type") {
        // Results are recorded with their calls.
        "user" if said.iter().any(is_response) => Vec::new(),
        "user" => vec![json!({"role": "user", "parts": said})],
        "gemini" => {
            let is_said = |part: &Value| {
                part.get("text") != Some(&json!("")) && part.get("functionCall").is_none()
            };
            let mut turn: Vec<Value> = said.into_iter().filter(is_said).collect();
            turn.extend(items(message, "toolCalls").map(|call| {
                json!({"functionCall": {"id": call["id"], "name": call["name"], "args": call["args"]}})
            }));
            let results: Vec<Value> = items(message, "toolCalls").flat_map(result).collect();
            let mut contents = vec![json!({"role": "model", "parts": turn})];
            if !results.is_empty() {
                contents.push(json!({"role": "user", "parts": results}));
            }
            contents
        }
        _ => Vec::new(),
    }
}

/// Returns the result of a call; none if it was cancelled before it ran.
fn result(call: &Value) -> Vec<Value> {
    let result = parts(&call["result"]);
    if result.is_empty() || result.iter().any(is_response) {
        return result;
    }
    let texts: Vec<&str> = result.iter().map(|part| text(part, "text")).collect();
    let response = json!({"output": texts.join("\n")});
    vec![
        json!({"functionResponse": {"id": call["id"], "name": call["name"], "response": response}}),
    ]
}

fn is_response(part: &Value) -> bool {
    part.get("functionResponse").is_some()
}

/// Converts a part, a text, or a list of both to a list of parts.
fn parts(content: &Value) -> Vec<Value> {
    let part = |part: &Value| match part {
        Value::String(text) => json!({"text": text}),
        other => other.clone(),
    };
    match content {
        Value::Null => Vec::new(),
        Value::Array(several) => several.iter().map(part).collect(),
        one => vec![part(one)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_records_change_earlier_ones() {
        let user = |id: &str, text: &str| json!({"id": id, "type": "user", "content": text});
        let log = [
            json!({"sessionId": "s", "projectHash": "p"}),
            user("1", "go"),
            user("2", "no"),
            json!({"$rewindTo": "2"}),
            user("3", "on"),
            json!({"id": "4", "type": "gemini", "content": ""}),
            json!({"id": "4", "type": "gemini", "content": "done"}),
            json!({"$set": {"lastUpdated": "t"}}),
        ];
        let said = [
            Message::user("go"),
            Message::user("on"),
            Message::assistant("done"),
        ];
        assert_eq!(read(&log), [said]);
        let replaced = [
            &log[..],
            &[json!({"$set": {"messages": [user("9", "new")]}})],
        ]
        .concat();
        assert_eq!(read(&replaced), [[Message::user("new")]]);
    }
}
