//! OpenAI's responses.

use serde_json::{Value, json};

use super::Said;

fn items(said: &Said, number: usize) -> Vec<Value> {
    match said {
        Said::Text(text) => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            vec![
                json!({"type": "message", "id": format!("msg_{number}"), "status": "completed", "role": "assistant", "content": content}),
            ]
        }
        Said::Calls(calls) => calls
            .iter()
            .map(|(id, name, arguments)| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments.to_string(), "status": "completed"}))
            .collect(),
    }
}

fn response(output: &[Value], number: usize, tokens: usize, status: &str) -> Value {
    let usage = json!({"input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens + 9});
    json!({
        "id": format!("resp_{number}"), "object": "response", "created_at": 1, "status": status, "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "model": "scripted", "output": output,
        "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": usage,
    })
}

pub fn whole(said: &Said, number: usize, tokens: usize) -> Value {
    response(&items(said, number), number, tokens, "completed")
}

pub fn events(said: &Said, number: usize, tokens: usize) -> String {
    let (mut text, mut sequence) = (String::new(), 0);
    let mut send = |kind: &str, mut event: Value| {
        event["type"] = kind.into();
        event["sequence_number"] = sequence.into();
        sequence += 1;
        text += &format!("event: {kind}\ndata: {event}\n\n");
    };
    send(
        "response.created",
        json!({"response": response(&[], number, tokens, "in_progress")}),
    );
    let items = items(said, number);
    for (index, item) in items.iter().enumerate() {
        let (mut begun, id) = (item.clone(), &item["id"]);
        begun["status"] = "in_progress".into();
        if let Some(arguments) = item.get("arguments") {
            begun["arguments"] = "".into();
            send(
                "response.output_item.added",
                json!({"output_index": index, "item": begun}),
            );
            send(
                "response.function_call_arguments.delta",
                json!({"item_id": id, "output_index": index, "delta": arguments}),
            );
            send(
                "response.function_call_arguments.done",
                json!({"item_id": id, "output_index": index, "name": item["name"], "arguments": arguments}),
            );
        } else {
            let part = &item["content"][0];
            begun["content"] = json!([]);
            send(
                "response.output_item.added",
                json!({"output_index": index, "item": begun}),
            );
            let mut empty = part.clone();
            empty["text"] = "".into();
            let place = json!({"item_id": id, "output_index": index, "content_index": 0});
            let with = |field: &str, value: &Value| {
                let mut event = place.clone();
                event[field] = value.clone();
                if field != "part" {
                    event["logprobs"] = json!([]);
                }
                event
            };
            send("response.content_part.added", with("part", &empty));
            send("response.output_text.delta", with("delta", &part["text"]));
            send("response.output_text.done", with("text", &part["text"]));
            send("response.content_part.done", with("part", part));
        }
        send(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }
    send(
        "response.completed",
        json!({"response": response(&items, number, tokens, "completed")}),
    );
    text
}
