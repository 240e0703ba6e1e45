//! Answers of an endpoint, whole or in chunks. Compatible endpoints leave out a lot, so only the
//! necessary fields are required.

use offcut::ToolCall;
use offcut::agent::{ModelError, ModelReply};
use offcut::format::Message;
use serde_json::Value;

/// An answer as it arrives.
#[derive(Debug, Default)]
pub(super) struct ArrivingAnswer {
    text: String,
    /// The calls, each with its index from the endpoint.
    calls: Vec<(Option<u64>, ToolCall)>,
    input_tokens: Option<u64>,
    finish_reason: Option<String>,
}

impl ArrivingAnswer {
    pub(super) fn whole(answer: &Value) -> Result<Self, ModelError> {
        let mut all = Self::default();
        all.take(answer, "message", &|_| {})?;
        if answer["choices"].as_array().is_none_or(Vec::is_empty) {
            return Err(ModelError::new(
                "the endpoint's answer has no `choices`, so it is not a chat completion: check OPENAI_BASE_URL",
            ));
        }
        Ok(all)
    }

    /// Checks that a streamed answer is complete.
    pub(super) fn ended(self) -> Result<Self, ModelError> {
        match self.finish_reason {
            Some(_) => Ok(self),
            None => Err(ModelError::new(
                "the answer was cut off before its end: try again; if it always is, see whether OPENAI_BASE_URL is an \
                 OpenAI-compatible API that streams",
            )),
        }
    }

    /// Adds a whole answer or a chunk of one, whose message is in `field`.
    pub(super) fn take(
        &mut self,
        from: &Value,
        field: &str,
        on_text: &(dyn Fn(&str) + Sync),
    ) -> Result<(), ModelError> {
        if let Some(error) = from.get("error").filter(|error| !error.is_null()) {
            let message = error["message"].as_str().unwrap_or("no reason given");
            return Err(ModelError::new(format!(
                "the endpoint failed while answering: {message}"
            )));
        }
        if let Some(tokens) = from["usage"]["prompt_tokens"].as_u64() {
            self.input_tokens = Some(tokens);
        }
        let choice = &from["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish_reason = Some(reason.to_owned());
        }
        let said = &choice[field];
        for text in [&said["content"], &said["refusal"]]
            .into_iter()
            .filter_map(Value::as_str)
        {
            self.text.push_str(text);
            on_text(text);
        }
        said["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|call| self.take_call(call));
        Ok(())
    }

    /// Adds a call, or a piece of one. Some endpoints give pieces no index; then a piece with an id
    /// or a name begins a call.
    fn take_call(&mut self, call: &Value) {
        let (index, id) = (
            call["index"].as_u64(),
            call["id"].as_str().unwrap_or_default(),
        );
        let at = match index {
            Some(_) => self.calls.iter().position(|(known, _)| *known == index),
            None if id.is_empty() && call["function"]["name"].is_null() => {
                self.calls.len().checked_sub(1)
            }
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
        if let (Some(name), true) = (call["function"]["name"].as_str(), known.name.is_empty()) {
            name.clone_into(&mut known.name);
        }
        match &call["function"]["arguments"] {
            Value::String(piece) => known.arguments.push_str(piece),
            Value::Null => {}
            // Some endpoints send JSON instead of text.
            other => known.arguments.push_str(&other.to_string()),
        }
    }

    pub(super) fn into_reply(self) -> Result<ModelReply, ModelError> {
        let Self {
            text,
            calls,
            input_tokens,
            finish_reason,
        } = self;
        if text.is_empty() && calls.is_empty() {
            let reason = finish_reason.as_deref().unwrap_or("none given");
            let text = format!(
                "the model returned neither text nor a tool call (finish reason: {reason})"
            );
            return Err(ModelError::new(text));
        }
        let content = if text.is_empty() {
            Vec::new()
        } else {
            vec![text.into()]
        };
        let calls = calls.into_iter().map(|(_, call)| call).collect();
        Ok(ModelReply {
            message: Message::Assistant { content, calls },
            input_tokens,
        })
    }
}
