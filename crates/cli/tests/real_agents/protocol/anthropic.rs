//! Anthropic's messages.

use serde_json::{Value, json};

use crate::model::Call;

/// Words by which Claude Code asks for a summary of a conversation. The request has the tools of all others.
pub const COMPACT: &str = "create a detailed summary of the conversation";

/// A reply as server-sent events: calls, or an answer if there are none.
pub fn events(request: &Value, calls: &[Call], round: usize, tokens: usize) -> String {
    let mut text = String::new();
    let mut send = |event: Value| {
        text += &format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        );
    };
    let usage = json!({"input_tokens": tokens, "output_tokens": 1});
    send(json!({"type": "message_start", "message": {
        "id": format!("msg_{round}"), "type": "message", "role": "assistant", "model": request["model"],
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    }}));
    let blocks = calls.iter().enumerate().map(|(nth, (name, input))| {
        let id = format!("toolu_{round}_{nth}");
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        (
            block,
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
        )
    });
    let answer = (
        json!({"type": "text", "text": ""}),
        json!({"type": "text_delta", "text": "Done."}),
    );
    let answer = calls.is_empty().then_some(answer);
    for (index, (block, delta)) in blocks.chain(answer).enumerate() {
        send(json!({"type": "content_block_start", "index": index, "content_block": block}));
        send(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        send(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = if calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    send(
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9}}),
    );
    send(json!({"type": "message_stop"}));
    text
}
