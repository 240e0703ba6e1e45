//! Trajectories of SWE-agent (`*.traj`): the history sent to its model, in which an observation may
//! be a user message.

use offcut::format::{Message, WireFormat};
use serde_json::{Value, json};

use crate::transcript::fields::{is_true, items, text};
use crate::transcript::messages;

pub(super) fn is_trajectory(document: &Value) -> bool {
    document.get("history").is_some_and(Value::is_array)
        && document.get("trajectory").is_some_and(Value::is_array)
}

/// Reads the transcript as chat completions: an action that the model wrote into its text becomes a
/// call, and what follows becomes its result.
pub(super) fn read(document: &Value) -> Vec<Vec<Message>> {
    let mut chat: Vec<Value> = Vec::new();
    // Call that an observation without an id answers.
    let mut acted: Option<String> = None;
    for (index, entry) in items(document, "history").enumerate() {
        let mut message = json!({"role": entry["role"], "content": entry["content"]});
        let (answered, action) = (acted.take(), text(entry, "action").trim());
        match (text(entry, "role"), answered) {
            // It is sent, but the model did not write it here.
            _ if is_true(entry, "is_demo") => message["role"] = "user".into(),
            ("assistant", _) if items(entry, "tool_calls").next().is_some() => {
                message["tool_calls"] = entry["tool_calls"].clone();
            }
            ("assistant", _) if !action.is_empty() => {
                let id = format!("action_{index}");
                let name = action.split_whitespace().next();
                let arguments = json!({"action": action}).to_string();
                let function = json!({"name": name, "arguments": arguments});
                message["tool_calls"] =
                    json!([{"id": id, "type": "function", "function": function}]);
                acted = Some(id);
            }
            ("tool", _) => {
                let answered = entry.pointer("/tool_call_ids/0");
                message["tool_call_id"] = answered.unwrap_or(&entry["tool_call_id"]).clone();
            }
            ("user", Some(id)) => {
                message["role"] = "tool".into();
                message["tool_call_id"] = id.into();
            }
            _ => {}
        }
        chat.push(message);
    }
    vec![messages::read(WireFormat::OpenAiChat, &chat)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_in_the_text_is_a_call_and_the_observation_its_result() {
        let trajectory = json!({"trajectory": [], "history": [
            {"role": "system", "content": "Act."},
            {"role": "user", "content": "a demonstration", "is_demo": true},
            {"role": "assistant", "content": "demonstrated", "action": "ls", "is_demo": true},
            {"role": "user", "content": "Fix it.", "message_type": "observation"},
            {"role": "assistant", "content": "I look. ```ls -F```", "action": "ls -F\n", "tool_calls": null},
            {"role": "user", "content": "a.py", "message_type": "observation"},
            {"role": "assistant", "content": "Done.", "action": ""},
            {"role": "user", "content": "Thanks."},
        ]});
        let read = read(&trajectory);
        let kinds: Vec<&str> = read[0]
            .iter()
            .map(|message| match message {
                Message::System { .. } => "system",
                Message::User { .. } => "user",
                Message::Assistant { calls, .. } if calls.is_empty() => "says",
                Message::Assistant { .. } => "calls",
                Message::Tool { name, .. } => name,
            })
            .collect();
        assert_eq!(
            kinds,
            [
                "system", "user", "user", "user", "calls", "ls", "says", "user"
            ]
        );
    }
}
