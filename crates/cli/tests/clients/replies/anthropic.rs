//! Anthropic's messages.

use serde_json::{Value, json};

use super::Said;

fn blocks(said: &Said) -> (Vec<Value>, &'static str) {
    match said {
        Said::Text(text) => (vec![json!({"type": "text", "text": text})], "end_turn"),
        Said::Calls(calls) => {
            let call = |(id, name, arguments): &(String, &str, Value)| json!({"type": "tool_use", "id": id, "name": name, "input": arguments});
            (calls.iter().map(call).collect(), "tool_use")
        }
    }
}

fn message(content: &[Value], reason: &Value, number: usize, tokens: usize) -> Value {
    let usage = json!({"input_tokens": tokens, "output_tokens": 9, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0});
    json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "scripted", "content": content, "stop_reason": reason, "stop_sequence": null, "usage": usage})
}

pub fn whole(said: &Said, number: usize, tokens: usize) -> Value {
    let (blocks, reason) = blocks(said);
    message(&blocks, &reason.into(), number, tokens)
}

pub fn events(said: &Said, number: usize, tokens: usize) -> String {
    let mut text = String::new();
    let mut send = |event: Value| {
        let kind = event["type"].as_str().unwrap();
        text += &format!("event: {kind}\ndata: {event}\n\n");
    };
    send(json!({"type": "message_start", "message": message(&[], &Value::Null, number, tokens)}));
    let (blocks, reason) = blocks(said);
    for (index, block) in blocks.into_iter().enumerate() {
        let mut begun = block.clone();
        let delta = if block["type"] == "text" {
            begun["text"] = "".into();
            json!({"type": "text_delta", "text": block["text"]})
        } else {
            begun["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        };
        send(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        send(json!({"type": "ping"}));
        send(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        send(json!({"type": "content_block_stop", "index": index}));
    }
    send(
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9}}),
    );
    send(json!({"type": "message_stop"}));
    text
}
