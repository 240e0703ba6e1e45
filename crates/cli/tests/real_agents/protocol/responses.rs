//! OpenAI's responses.

use serde_json::{Value, json};

use crate::model::Call;

/// A reply as server-sent events: calls, or an answer if there are none. The name of a tool in a namespace is
/// `NAMESPACE/NAME`.
pub fn events(calls: &[Call], round: usize, tokens: usize) -> String {
    let calls = calls.iter().enumerate().map(|(nth, (name, arguments))| {
        let mut item = json!({"type": "function_call", "id": format!("fc_{round}_{nth}")});
        item["call_id"] = format!("call_{round}_{nth}").into();
        item["arguments"] = arguments.to_string().into();
        item["name"] = match name.rsplit_once('/') {
            None => (*name).into(),
            Some((namespace, name)) => {
                item["namespace"] = namespace.into();
                name.into()
            }
        };
        item
    });
    let mut items: Vec<Value> = calls.collect();
    if items.is_empty() {
        let content = [json!({"type": "output_text", "text": "Done."})];
        items.push(
            json!({"type": "message", "id": "msg_0", "role": "assistant", "content": content}),
        );
    }
    stream(items, &format!("resp_{round}"), tokens)
}

/// A history that the provider has compacted.
pub fn compacted() -> String {
    let item = json!({"type": "compaction", "id": "cmp_0", "encrypted_content": "c2VhbGVk"});
    stream(vec![item], "resp_compacted", 1_000)
}

/// The events of a reply with these items.
fn stream(items: Vec<Value>, id: &str, tokens: usize) -> String {
    let mut text = String::new();
    let mut send = |event: Value| {
        text += &format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        );
    };
    send(json!({"type": "response.created", "response": {"id": id}}));
    for (index, item) in items.into_iter().enumerate() {
        send(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let usage = json!({"input_tokens": tokens, "output_tokens": 9, "total_tokens": tokens + 9});
    send(json!({"type": "response.completed", "response": {"id": id, "usage": usage}}));
    text
}
