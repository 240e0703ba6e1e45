//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::Said;

fn usage(tokens: usize) -> Value {
    json!({"prompt_tokens": tokens, "completion_tokens": 9, "total_tokens": tokens + 9})
}

/// The message of the model, with the calls numbered in a stream.
fn message(said: &Said, is_stream: bool) -> (Value, &'static str) {
    match said {
        Said::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Said::Calls(calls) => {
            let call = |(index, (id, name, arguments)): (usize, &(String, &str, Value))| {
                let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
                if is_stream {
                    call["index"] = index.into();
                }
                call
            };
            let calls: Vec<_> = calls.iter().enumerate().map(call).collect();
            (
                json!({"role": "assistant", "content": null, "tool_calls": calls}),
                "tool_calls",
            )
        }
    }
}

pub fn whole(said: &Said, number: usize, tokens: usize) -> Value {
    let (message, reason) = message(said, false);
    let choice = json!({"index": 0, "message": message, "finish_reason": reason, "logprobs": null});
    json!({"id": format!("chatcmpl-{number}"), "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice], "usage": usage(tokens)})
}

pub fn events(said: &Said, number: usize, tokens: usize) -> String {
    let (message, reason) = message(said, true);
    let mut text = String::new();
    let mut send = |choices: Value, usage: Value| {
        let chunk = json!({"id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices, "usage": usage});
        text += &format!("data: {chunk}\n\n");
    };
    send(
        json!([{"index": 0, "delta": message, "finish_reason": null}]),
        Value::Null,
    );
    send(
        json!([{"index": 0, "delta": {}, "finish_reason": reason}]),
        Value::Null,
    );
    send(json!([]), usage(tokens));
    text + "data: [DONE]\n\n"
}
