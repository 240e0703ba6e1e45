//! Trajectories in ATIF, the Agent Trajectory Interchange Format of Harbor, versions 1.0 to 1.8.

use offcut::format::{Message, WireFormat};
use serde_json::{Value, json};

use crate::transcript::fields::{is_true, items, text};
use crate::transcript::messages;

pub(super) fn is_trajectory(document: &Value) -> bool {
    text(document, "schema_version").starts_with("ATIF-")
}

/// Reads the trajectory and those of its subagents, each as a transcript.
pub(super) fn read(document: &Value) -> Vec<Vec<Message>> {
    let mut transcripts = Vec::new();
    // Not recursive, because nothing bounds the nesting.
    let mut left = vec![document];
    while let Some(trajectory) = left.pop() {
        let chat: Vec<Value> = items(trajectory, "steps").flat_map(sent).collect();
        transcripts.push(messages::read(WireFormat::OpenAiChat, &chat));
        let subagents: Vec<&Value> = items(trajectory, "subagent_trajectories").collect();
        left.extend(subagents.into_iter().rev());
    }
    transcripts
}

/// Converts a step to a message of chat completions, followed by the environment's answers.
fn sent(step: &Value) -> Vec<Value> {
    let observed = items(&step["observation"], "results");
    // Steps that are excluded were counted in another trajectory, or called no model.
    let is_call = !is_true(step, "is_copied_context") && step["llm_call_count"].as_u64() != Some(0);
    if text(step, "source") == "agent" && is_call {
        let calls = items(step, "tool_calls").map(|call| {
            let arguments = call["arguments"].to_string();
            let function = json!({"name": call["function_name"], "arguments": arguments});
            json!({"id": call["tool_call_id"], "type": "function", "function": function})
        });
        let calls: Vec<Value> = calls.collect();
        let turn = json!({"role": "assistant", "content": step["message"], "tool_calls": calls});
        let results = observed.map(|result| {
            json!({"role": "tool", "tool_call_id": result["source_call_id"], "content": result["content"]})
        });
        return std::iter::once(turn).chain(results).collect();
    }
    let contents = std::iter::once(&step["message"]).chain(observed.map(|one| &one["content"]));
    let content: Vec<Value> = contents.flat_map(blocks).collect();
    let role = match text(step, "source") {
        "system" => "system",
        _ => "user",
    };
    vec![json!({"role": role, "content": content})]
}

/// The parts of a content.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
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
