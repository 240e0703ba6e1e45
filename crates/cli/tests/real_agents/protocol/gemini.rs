//! Gemini's contents.

use serde_json::{Value, json};

use crate::model::Call;

/// A reply with calls. An answer without calls is one that fits the client's own questions too: which model
/// is to do the work, and whether it goes in circles.
pub fn reply(calls: &[Call], round: usize, tokens: usize) -> String {
    let answer = json!({
        "reasoning": "Done.", "model_choice": "flash", "complexity_reasoning": "Done.", "complexity_score": 1,
        "unproductive_state_analysis": "Done.", "unproductive_state_confidence": 0.0,
    });
    let mut parts: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(nth, (name, args))| {
            let id = format!("call_{round}_{nth}");
            json!({"functionCall": {"id": id, "name": name, "args": args}})
        })
        .collect();
    if parts.is_empty() {
        parts.push(json!({"text": answer.to_string()}));
    }
    let candidate =
        json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0});
    let usage = json!({"promptTokenCount": tokens, "candidatesTokenCount": 9, "totalTokenCount": tokens + 9});
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "none"}).to_string()
}
