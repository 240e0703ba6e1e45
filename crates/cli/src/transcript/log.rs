//! Session logs: files with a JSON document on each line, as Claude Code and Codex write them.

use std::collections::HashMap;

use offcut::format::{Message, WireFormat};
use serde_json::{Value, json};

use super::fields::{is_true, text};
use super::{messages, requests};

/// Parses a file with one document on each line. The last may be incomplete, if a session is
/// writing to it.
pub(super) fn lines(file: &str) -> Result<Vec<Value>, String> {
    let mut documents = Vec::new();
    let mut rest = file
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .peekable();
    while let Some((index, line)) = rest.next() {
        match serde_json::from_str(line) {
            Ok(document) => documents.push(document),
            Err(error) if error.is_eof() && rest.peek().is_none() && !documents.is_empty() => {}
            Err(error) => {
                return Err(format!(
                    "it is neither JSON nor JSON Lines: line {}: {error}",
                    index + 1
                ));
            }
        }
    }
    Ok(documents)
}

/// Reads the transcripts in a log, as a list of messages each. A new one begins where the context
/// was compacted.
pub(super) fn read(lines: &[Value]) -> Vec<Vec<Message>> {
    let all = |format: WireFormat, transcripts: Vec<Vec<Value>>| {
        transcripts
            .iter()
            .map(|raw| messages::read(format, raw))
            .collect()
    };
    if lines.iter().any(|line| line["payload"].is_object()) {
        return all(WireFormat::Responses, codex(lines));
    }
    if lines
        .iter()
        .any(|line| line.pointer("/message/role").is_some())
    {
        return all(WireFormat::Anthropic, claude_code(lines));
    }
    let requests: Vec<_> = lines.iter().flat_map(requests::of).collect();
    if !requests.is_empty() {
        return requests::conversations(requests);
    }
    // Plain messages, perhaps after a header line.
    let is_message = |line: &&Value| line.get("role").is_some() || line.get("type").is_some();
    let all = Value::Array(lines.iter().filter(is_message).cloned().collect());
    messages::of_document(&all).into_iter().collect()
}

/// Reads the items of a Codex log, without the events for its own screen, which repeat them.
fn codex(lines: &[Value]) -> Vec<Vec<Value>> {
    let mut transcripts = vec![Vec::new()];
    for line in lines {
        let Some(payload) = line.get("payload") else {
            continue;
        };
        match text(line, "type") {
            "response_item" if is_said(payload) => {
                if let Some(items) = transcripts.last_mut() {
                    items.push(payload.clone());
                }
            }
            "compacted" => {
                let said = payload.get("message").into_iter();
                let said = said.map(|said| json!({"role": "user", "content": said}));
                let replaced = payload["replacement_history"].as_array().cloned();
                transcripts.push(replaced.unwrap_or_else(|| said.collect()));
            }
            _ => {}
        }
    }
    transcripts
}

/// Returns true if an item is part of what is sent. The log has other items, such as snapshots of
/// the working tree.
fn is_said(item: &Value) -> bool {
    let kind = text(item, "type");
    matches!(kind, "message" | "reasoning") || kind.ends_with("_call") || kind.ends_with("_output")
}

/// Reads the messages of a Claude Code log. Leaves out subagents, which are separate conversations,
/// and thinking, which the API drops from earlier turns.
fn claude_code(lines: &[Value]) -> Vec<Vec<Value>> {
    let mut transcripts = vec![Vec::<Value>::new()];
    // Index of each assistant message in the last transcript: the log has a line for each of its
    // blocks.
    let mut by_id = HashMap::new();
    for line in lines {
        if text(line, "subtype") == "compact_boundary" {
            transcripts.push(Vec::new());
            by_id.clear();
        }
        let message = &line["message"];
        let is_made_up = text(message, "model") == "<synthetic>";
        let Some(transcript) = transcripts.last_mut() else {
            continue;
        };
        if message.get("role").is_none() || is_true(line, "isSidechain") || is_made_up {
            continue;
        }
        let (id, content) = (message["id"].as_str(), without_thinking(message));
        let known = id.and_then(|id| by_id.get(id).copied());
        let first = known.and_then(|at: usize| transcript.get_mut(at));
        let blocks = first.and_then(|first| first["content"].as_array_mut());
        if let (Some(blocks), Some(more)) = (blocks, content.as_array()) {
            blocks.extend_from_slice(more);
            continue;
        }
        if let Some(id) = id {
            by_id.insert(id, transcript.len());
        }
        transcript.push(json!({"role": message["role"], "content": content}));
    }
    transcripts
}

fn without_thinking(message: &Value) -> Value {
    let is_thinking =
        |block: &&Value| matches!(text(block, "type"), "thinking" | "redacted_thinking");
    match &message["content"] {
        Value::Array(blocks) => blocks
            .iter()
            .filter(|block| !is_thinking(block))
            .cloned()
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Abbreviates who speaks: `u`, `a` with the number of calls, `t` with the tool's name.
    fn outline(transcripts: &[Vec<Message>]) -> Vec<String> {
        let short = |message: &Message| match message {
            Message::System { .. } => "s".to_owned(),
            Message::User { .. } => "u".to_owned(),
            Message::Assistant { calls, .. } => format!("a{}", calls.len()),
            Message::Tool { name, is_error, .. } => {
                format!("t:{name}{}", if *is_error { "!" } else { "" })
            }
        };
        transcripts
            .iter()
            .map(|messages| messages.iter().map(short).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn codex_logs_are_responses_items() {
        let item =
            |payload: Value| json!({"timestamp": "t", "type": "response_item", "payload": payload});
        let call = |id: &str| {
            item(
                json!({"type": "function_call", "name": "shell", "call_id": id, "arguments": "{}"}),
            )
        };
        let output = |id: &str| {
            item(json!({"type": "function_call_output", "call_id": id, "output": "text"}))
        };
        let log = [
            json!({"type": "session_meta", "payload": {"id": "x", "instructions": null}}),
            item(
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}),
            ),
            json!({"type": "event_msg", "payload": {"type": "user_message", "message": "go"}}),
            item(json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"})),
            call("1"),
            item(json!({"type": "ghost_snapshot", "ghost_commit": {"id": "x"}})),
            call("2"),
            output("1"),
            output("2"),
            item(
                json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}),
            ),
            json!({"type": "compacted", "payload": {"message": "what was said so far"}}),
            call("3"),
        ];
        assert_eq!(outline(&read(&log)), ["u a2 t:shell t:shell a0", "u a1"]);
    }

    #[test]
    fn claude_code_logs_are_messages_of_anthropic() {
        let assistant = |id: &str, block: Value| json!({"type": "assistant", "isSidechain": false, "message": {"role": "assistant", "id": id, "content": [block]}});
        let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {}});
        let result = |id: &str| {
            let block = json!({"type": "tool_result", "tool_use_id": id, "content": "text", "is_error": id == "2"});
            json!({"type": "user", "toolUseResult": {}, "message": {"role": "user", "content": [block]}})
        };
        let aside = json!({"type": "user", "isSidechain": true, "message": {"role": "user", "content": "a subagent's task"}});
        let log = [
            json!({"type": "summary", "summary": "…"}),
            json!({"type": "user", "message": {"role": "user", "content": "go"}}),
            assistant(
                "m1",
                json!({"type": "thinking", "thinking": "…", "signature": "…"}),
            ),
            assistant("m1", json!({"type": "text", "text": "Looking."})),
            assistant("m1", call("1")),
            result("1"),
            // The same turn: the log has its blocks in the order in which they arrived, with
            // results in between.
            assistant("m1", call("2")),
            result("2"),
            aside,
            json!({"type": "assistant", "message": {"role": "assistant", "model": "<synthetic>", "content": "API error"}}),
            assistant("m2", json!({"type": "text", "text": "Done."})),
            json!({"type": "system", "subtype": "compact_boundary"}),
            json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": "so far"}}),
            assistant("m3", json!({"type": "text", "text": "On."})),
        ];
        assert_eq!(outline(&read(&log)), ["u a2 t:Read t:Read! a0", "u a0"]);
    }

    #[test]
    fn lines_may_be_transcripts_or_messages() {
        let (user, assistant) = (
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "content": "done"}),
        );
        let transcript = json!({"messages": [user, assistant]});
        assert_eq!(
            outline(&read(&[transcript.clone(), transcript])),
            ["u a0", "u a0"]
        );
        assert_eq!(outline(&read(&[user, assistant])), ["u a0"]);
        let items = [
            json!({"id": "x", "timestamp": "t"}),
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}),
            json!({"type": "function_call", "name": "f", "call_id": "1", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "1", "output": "x"}),
        ];
        assert_eq!(outline(&read(&items)), ["u a1 t:f"]);
    }

    #[test]
    fn a_line_that_is_still_being_written_is_left_out() {
        assert_eq!(lines("{\"a\":1}\n\n{\"b\":").unwrap(), [json!({"a": 1})]);
        assert!(lines("{\"a\":\n{\"b\":1}").unwrap_err().contains("line 1"));
    }
}
