//! Sessions of pi (`~/.pi/agent/sessions/…/*.jsonl`): a tree of entries, in which the path to the
//! last one is the conversation.

use std::collections::{HashMap, HashSet};

use offcut::format::{Message, WireFormat};
use serde_json::{Value, json};

use crate::transcript::fields::{is_true, text};
use crate::transcript::messages;

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
    let path = path(lines);
    let transcripts = path.chunk_by(|_, next| text(next, "type") != "compaction");
    let read = |entries: &[&Value]| {
        let sent: Vec<Value> = entries.iter().filter_map(|entry| message(entry)).collect();
        messages::read(WireFormat::Anthropic, &sent)
    };
    transcripts.map(read).collect()
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

/// Converts an entry to the message that the model is sent, in Anthropic's form.
fn message(entry: &Value) -> Option<Value> {
    let content = match text(entry, "type") {
        "message" => return said(&entry["message"]),
        "custom_message" => blocks(&entry["content"]),
        "compaction" => format!(
            "The conversation history before this point was compacted into the following summary:\n\n\
             <summary>\n{}\n</summary>",
            text(entry, "summary")
        )
        .into(),
        "branch_summary" => format!(
            "The following is a summary of a branch that this conversation came back from:\n\n\
             <summary>\n{}</summary>",
            text(entry, "summary")
        )
        .into(),
        _ => return None,
    };
    Some(json!({"role": "user", "content": content}))
}

fn said(message: &Value) -> Option<Value> {
    let content = blocks(&message["content"]);
    Some(match text(message, "role") {
        "assistant" => json!({"role": "assistant", "content": content}),
        "toolResult" => {
            let (id, is_error) = (&message["toolCallId"], is_true(message, "isError"));
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error});
            json!({"role": "user", "content": [result]})
        }
        // A command that the user ran.
        "bashExecution" if is_true(message, "excludeFromContext") => return None,
        "bashExecution" => {
            let [command, output] = ["command", "output"].map(|field| text(message, field));
            let said = format!("Ran `{command}`\n```\n{output}\n```");
            json!({"role": "user", "content": said})
        }
        "user" | "custom" | "hookMessage" => json!({"role": "user", "content": content}),
        _ => return None,
    })
}

/// Content in Anthropic's form, without thoughts.
fn blocks(content: &Value) -> Value {
    let Value::Array(blocks) = content else {
        return content.clone();
    };
    let block = |block: &Value| match text(block, "type") {
        "thinking" => None,
        "toolCall" => Some(
            json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["arguments"]}),
        ),
        "image" => {
            let source =
                json!({"type": "base64", "media_type": block["mimeType"], "data": block["data"]});
            Some(json!({"type": "image", "source": source}))
        }
        _ => Some(block.clone()),
    };
    blocks.iter().filter_map(block).collect()
}

#[cfg(test)]
mod tests {
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
