//! Trajectories in ATIF, the Agent Trajectory Interchange Format of Harbor, versions 1.0 to 1.8.

use offcut::ToolCall;
use offcut::format::Message;
use serde_json::Value;

use crate::transcript::fields::{call, is_true, items, parts, text};

pub(super) fn is_trajectory(document: &Value) -> bool {
    text(document, "schema_version").starts_with("ATIF-")
}

/// Reads the trajectory and those of its subagents, each as a transcript.
pub(super) fn read(document: &Value) -> Vec<Vec<Message>> {
    let mut transcripts = Vec::new();
    // Not recursive, because nothing bounds the nesting.
    let mut left = vec![document];
    while let Some(trajectory) = left.pop() {
        transcripts.push(items(trajectory, "steps").flat_map(messages).collect());
        let subagents: Vec<&Value> = items(trajectory, "subagent_trajectories").collect();
        left.extend(subagents.into_iter().rev());
    }
    transcripts
}

/// Converts a step to a message, followed by the environment's answers.
fn messages(step: &Value) -> Vec<Message> {
    let content = parts(&step["message"]);
    let calls: Vec<ToolCall> = items(step, "tool_calls")
        .map(|block| call(block, "tool_call_id", "function_name"))
        .collect();
    let observed = items(&step["observation"], "results");
    // Steps that are excluded were counted in another trajectory, or called no model.
    let is_call = !is_true(step, "is_copied_context") && step["llm_call_count"].as_u64() != Some(0);
    if text(step, "source") == "agent" && is_call {
        let results = observed.map(|result| {
            let id = text(result, "source_call_id");
            let call = calls.iter().find(|call| call.id == id);
            Message::Tool {
                call_id: id.to_owned(),
                name: call.map(|call| call.name.clone()).unwrap_or_default(),
                content: parts(&result["content"]),
                is_error: false,
            }
        });
        let mut messages: Vec<Message> = results.collect();
        messages.insert(0, Message::Assistant { content, calls });
        return messages;
    }
    let content = observed
        .map(|result| parts(&result["content"]))
        .fold(content, |said, observed| [said, observed].concat());
    vec![match text(step, "source") {
        "system" => Message::System { content },
        _ => Message::User { content },
    }]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copied_steps_are_not_calls_and_subagents_are_transcripts() {
        let observation = json!({"results": [{"source_call_id": "1", "content": "a.py"}]});
        let calls = json!([{"tool_call_id": "1", "function_name": "ls", "arguments": {}}]);
        let agent = json!({"source": "agent", "message": "I look.", "tool_calls": calls, "observation": observation});
        let mut copied = agent.clone();
        copied["is_copied_context"] = json!(true);
        let subagent = json!({"schema_version": "ATIF-v1.7", "steps": [agent]});
        let trajectory = json!({
            "schema_version": "ATIF-v1.7",
            "steps": [{"source": "system", "message": "Act."}, copied, agent],
            "subagent_trajectories": [subagent],
        });
        let read = read(&trajectory);
        assert_eq!(read.len(), 2);
        assert!(matches!(
            &read[0][..],
            [
                Message::System { .. },
                Message::User { .. },
                Message::Assistant { .. },
                Message::Tool { .. }
            ]
        ));
        assert_eq!(read[1], read[0][2..]);
    }
}
