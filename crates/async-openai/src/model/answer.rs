//! Answers of an endpoint. Compatible endpoints leave out a lot, so only the necessary fields are required.

use offcut::agent::{ModelError, ModelReply};
use offcut::format::{LoopFormat, Message, OpenAiChat};
use serde_json::{Value, json};

/// Reads an answer.
pub(super) fn reply(answer: &Value) -> Result<ModelReply, ModelError> {
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let message = error["message"].as_str().unwrap_or("no reason given");
        return Err(ModelError::new(format!(
            "the endpoint failed while answering: {message}"
        )));
    }
    let choice = &answer["choices"][0];
    if choice.is_null() {
        return Err(ModelError::new(
            "the endpoint's answer has no `choices`, so it is not a chat completion: check OPENAI_BASE_URL",
        ));
    }
    let said = &choice["message"];
    let texts = [&said["content"], &said["refusal"]];
    let text: String = texts.into_iter().filter_map(Value::as_str).collect();
    let calls = json!({"role": "assistant", "tool_calls": said["tool_calls"]});
    let calls = OpenAiChat.tool_calls(&calls);
    if text.is_empty() && calls.is_empty() {
        let reason = choice["finish_reason"].as_str().unwrap_or("none given");
        let text =
            format!("the model returned neither text nor a tool call (finish reason: {reason})");
        return Err(ModelError::new(text));
    }
    let content = if text.is_empty() {
        Vec::new()
    } else {
        vec![text.into()]
    };
    Ok(ModelReply {
        message: Message::Assistant { content, calls },
        input_tokens: answer["usage"]["prompt_tokens"].as_u64(),
    })
}
