//! Sessions of pi (`~/.pi/agent/sessions/…/*.jsonl`): a tree of entries, in which the path to the
//! last one is the conversation.

use std::collections::{HashMap, HashSet};

use offcut::format::Message;
use serde_json::Value;

use crate::transcript::fields::{call, is_true, items, parts, text};

/// Recognizes the header in the first line, or, in an export without one, the role of results.
pub(super) fn is_session(lines: &[Value]) -> bool {
    let is_head = |line: &Value| text(line, "type") == "session" && line.get("cwd").is_some();
    let is_result =
        |line: &Value| line.pointer("/message/role").and_then(Value::as_str) == Some("toolResult");
    lines.first().is_some_and(is_head) || lines.iter().any(is_result)
}

/// Reads the transcripts. A new one begins where the context was compacted, and starts with the
/// summary only: turns that the compaction kept are in the previous transcript already, and a turn
/// is one call.
pub(super) fn read(lines: &[Value]) -> Vec<Vec<Message>> {
    let mut transcripts = vec![Vec::new()];
    for entry in path(lines) {
        if text(entry, "type") == "compaction" {
            transcripts.push(Vec::new());
        }
        if let Some(transcript) = transcripts.last_mut() {
            transcript.extend(message(entry));
        }
    }
    transcripts
}

/// Returns the path from the root to the last entry. Entries of format version 1 have no parents
/// and are all on it.
fn path(lines: &[Value]) -> Vec<&Value> {
    let entries = lines.iter().filter(|line| text(line, "type") != "session");
    let entries: Vec<&Value> = entries.collect();
    if !entries.iter().any(|entry| entry.get("parentId").is_some()) {
        return entries;
    }
    let by_id = entries.iter().map(|entry| (text(entry, "id"), *entry));
    let by_id: HashMap<&str, &Value> = by_id.collect();
    let mut path = Vec::new();
    // Parents in a file may form a cycle.
    let mut seen = HashSet::new();
    let mut next = entries.last().copied();
    while let Some(entry) = next.filter(|entry| seen.insert(text(entry, "id"))) {
        path.push(entry);
        let parent = entry["parentId"].as_str();
        next = parent.and_then(|parent| by_id.get(parent).copied());
    }
    path.reverse();
    path
}

/// Converts an entry to the message that the model is sent.
fn message(entry: &Value) -> Option<Message> {
    match text(entry, "type") {
        "message" => said(entry.get("message")?),
        "custom_message" => Some(user(entry.get("content")?)),
        "compaction" => Some(Message::user(format!(
            "The conversation history before this point was compacted into the following summary:\n\n\
             <summary>\n{}\n</summary>",
            text(entry, "summary")
        ))),
        "branch_summary" => Some(Message::user(format!(
            "The following is a summary of a branch that this conversation came back from:\n\n\
             <summary>\n{}</summary>",
            text(entry, "summary")
        ))),
        _ => None,
    }
}

fn said(message: &Value) -> Option<Message> {
    let content = &message["content"];
    match text(message, "role") {
        "assistant" => Some(Message::Assistant {
            content: parts(content),
            calls: items(message, "content")
                .filter(|block| text(block, "type") == "toolCall")
                .map(|block| call(block, "id", "name"))
                .collect(),
        }),
        "toolResult" => Some(Message::Tool {
            call_id: text(message, "toolCallId").to_owned(),
            name: text(message, "toolName").to_owned(),
            content: parts(content),
            is_error: is_true(message, "isError"),
        }),
        // A command that the user ran.
        "bashExecution" if is_true(message, "excludeFromContext") => None,
        "bashExecution" => Some(Message::user(format!(
            "Ran `{}`\n```\n{}\n```",
            text(message, "command"),
            text(message, "output")
        ))),
        "user" | "custom" | "hookMessage" => Some(user(content)),
        _ => None,
    }
}

fn user(content: &Value) -> Message {
    Message::User {
        content: parts(content),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(id: &str, parent: &str, message: &Value) -> Value {
        json!({"type": "message", "id": id, "parentId": parent, "message": message})
    }

    #[test]
    fn only_the_branch_of_the_last_entry_counts() {
        let log = [
            json!({"type": "session", "version": 3, "id": "s", "cwd": "/"}),
            entry("1", "", &json!({"role": "user", "content": "go"})),
            entry(
                "2",
                "1",
                &json!({"role": "assistant", "content": [{"type": "text", "text": "left"}]}),
            ),
            entry(
                "3",
                "1",
                &json!({"role": "assistant", "content": [{"type": "text", "text": "right"}]}),
            ),
            json!({"type": "model_change", "id": "4", "parentId": "3"}),
        ];
        assert_eq!(
            read(&log),
            [[Message::user("go"), Message::assistant("right")]]
        );
    }

    #[test]
    fn a_cycle_of_parents_terminates() {
        let log = [
            json!({"type": "session", "cwd": "/"}),
            entry("1", "2", &json!({"role": "user", "content": "a"})),
            entry("2", "1", &json!({"role": "user", "content": "b"})),
        ];
        assert_eq!(read(&log), [[Message::user("a"), Message::user("b")]]);
    }

    #[test]
    fn a_compaction_begins_a_new_transcript_without_repeating_turns() {
        let turn =
            |text: &str| json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        let log = [
            json!({"type": "session", "cwd": "/"}),
            entry("1", "", &turn("one")),
            entry("2", "1", &turn("two")),
            json!({"type": "compaction", "id": "3", "parentId": "2", "summary": "so far", "firstKeptEntryId": "2"}),
            entry("4", "3", &turn("three")),
        ];
        let transcripts = read(&log);
        assert_eq!(
            transcripts[0],
            [Message::assistant("one"), Message::assistant("two")]
        );
        assert!(matches!(
            &transcripts[1][..],
            [Message::User { .. }, Message::Assistant { .. }]
        ));
    }
}
