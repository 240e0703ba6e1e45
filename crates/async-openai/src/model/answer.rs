//! Answers of an endpoint, whole or in chunks. Compatible endpoints leave out a lot, so only the necessary fields are
//! required.

use std::panic::{AssertUnwindSafe, catch_unwind};

use offcut::ToolCall;
use offcut::agent::{ModelError, ModelReply};
use offcut::format::{LoopFormat, Message, OpenAiChat};
use serde_json::{Value, json};

/// A callback that gets each piece of text as it arrives.
pub(super) type OnText = dyn Fn(&str) + Send + Sync;

/// Reads a whole answer.
pub(super) fn reply(answer: &Value) -> Result<ModelReply, ModelError> {
    refuse_error(answer)?;
    let choice = &answer["choices"][0];
    if choice.is_null() {
        return Err(ModelError::new(
            "the endpoint's answer has no `choices`, so it is not a chat completion: check OPENAI_BASE_URL",
        ));
    }
    let said = &choice["message"];
    let calls = json!({"role": "assistant", "tool_calls": said["tool_calls"]});
    let calls = OpenAiChat.tool_calls(&calls);
    let text = texts(said).collect();
    reply_of(text, calls, &choice["finish_reason"], &answer["usage"])
}

/// An answer as it arrives in chunks.
#[derive(Default)]
pub(super) struct ArrivingAnswer {
    text: String,
    /// The calls, each with its index from the endpoint.
    calls: Vec<(Option<u64>, ToolCall)>,
    finish_reason: Value,
    usage: Value,
}

impl ArrivingAnswer {
    /// Adds a chunk, and passes its text to `on_text`.
    pub(super) fn take(&mut self, chunk: &Value, on_text: &OnText) -> Result<(), ModelError> {
        refuse_error(chunk)?;
        let choice = &chunk["choices"][0];
        if choice["finish_reason"].is_string() {
            self.finish_reason = choice["finish_reason"].clone();
        }
        if chunk["usage"].is_object() {
            self.usage = chunk["usage"].clone();
        }
        for text in texts(&choice["delta"]) {
            self.text.push_str(text);
            // A panic in `on_text` does not end the answer.
            let _ = catch_unwind(AssertUnwindSafe(|| on_text(text)));
        }
        let calls = choice["delta"]["tool_calls"].as_array();
        for call in calls.into_iter().flatten() {
            self.take_call(call);
        }
        Ok(())
    }

    /// Adds a call, or a piece of one. Some endpoints give pieces no index; then a piece with an id
    /// or a name begins a call.
    fn take_call(&mut self, call: &Value) {
        let (index, function) = (call["index"].as_u64(), &call["function"]);
        let id = call["id"].as_str().unwrap_or_default();
        let at = match index {
            Some(_) => self.calls.iter().position(|(known, _)| *known == index),
            None if id.is_empty() && function["name"].is_null() => self.calls.len().checked_sub(1),
            None => None,
        };
        let at = at.unwrap_or_else(|| {
            self.calls.push((index, ToolCall::default()));
            self.calls.len() - 1
        });
        let (_, known) = &mut self.calls[at];
        // Ids and names arrive whole; some endpoints repeat them with every piece.
        if known.id.is_empty() {
            id.clone_into(&mut known.id);
        }
        if let (Some(name), true) = (function["name"].as_str(), known.name.is_empty()) {
            name.clone_into(&mut known.name);
        }
        match &function["arguments"] {
            Value::String(piece) => known.arguments.push_str(piece),
            Value::Null => {}
            // Some endpoints send JSON instead of text.
            other => known.arguments.push_str(&other.to_string()),
        }
    }

    /// Reads the answer. Fails if it has no end.
    pub(super) fn into_reply(self) -> Result<ModelReply, ModelError> {
        if self.finish_reason.is_null() {
            return Err(ModelError::new(
                "the answer was cut off before its end: try again; if it always is, see whether OPENAI_BASE_URL is an \
                 OpenAI-compatible API that streams",
            ));
        }
        let calls = self.calls.into_iter().map(|(_, call)| call).collect();
        reply_of(self.text, calls, &self.finish_reason, &self.usage)
    }
}

fn refuse_error(answer: &Value) -> Result<(), ModelError> {
    let Some(error) = answer.get("error").filter(|error| !error.is_null()) else {
        return Ok(());
    };
    let message = error["message"].as_str().unwrap_or("no reason given");
    Err(ModelError::new(format!(
        "the endpoint failed while answering: {message}"
    )))
}

fn texts(said: &Value) -> impl Iterator<Item = &str> {
    let texts = [&said["content"], &said["refusal"]];
    texts.into_iter().filter_map(Value::as_str)
}

fn reply_of(
    text: String,
    calls: Vec<ToolCall>,
    finish_reason: &Value,
    usage: &Value,
) -> Result<ModelReply, ModelError> {
    if text.is_empty() && calls.is_empty() {
        let reason = finish_reason.as_str().unwrap_or("none given");
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
        input_tokens: usage["prompt_tokens"].as_u64(),
    })
}
