//! Gemini's contents. A stream has one event, which is the whole reply.

use serde_json::{Value, json};

use super::Said;

pub fn whole(said: &Said, tokens: usize) -> Value {
    let parts: Vec<Value> = match said {
        Said::Text(text) => vec![json!({"text": text})],
        Said::Calls(calls) => calls
            .iter()
            .enumerate()
            .map(|(nth, (id, name, arguments))| {
                let mut part = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
                if nth == 0 {
                    // The first call of a turn has one, and the provider wants it back.
                    part["thoughtSignature"] = "c2lnbmVk".into();
                }
                part
            })
            .collect(),
    };
    let candidate =
        json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0});
    let usage = json!({"promptTokenCount": tokens, "candidatesTokenCount": 9, "totalTokenCount": tokens + 9});
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"})
}
