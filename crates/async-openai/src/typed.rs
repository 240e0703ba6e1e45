//! Typed messages of a loop.

use std::fmt;

use async_openai::types::chat::{ChatCompletionMessageToolCalls, ChatCompletionRequestMessage};
use async_openai::types::responses::{FunctionCallOutput, InputContent, InputItem};
use offcut::format::{Conversation, Format as _, LoopFormat as _, NewPiece, Piece, WireFormat};
use offcut::{OffloadError, Part, Report, ToolCall, ToolReduction, Turn};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use crate::text::as_text;

/// A type of messages that async-openai sends as JSON.
pub trait TypedMessage: Serialize + DeserializeOwned + Send + Sync {
    /// The format of that JSON.
    const FORMAT: WireFormat;
}

impl TypedMessage for ChatCompletionRequestMessage {
    const FORMAT: WireFormat = WireFormat::OpenAiChat;
}

impl TypedMessage for InputItem {
    const FORMAT: WireFormat = WireFormat::Responses;
}

/// Messages of chat completions.
pub type TypedChat<'m> = TypedMessages<'m, ChatCompletionRequestMessage>;

/// Items of the Responses API.
pub type TypedResponses<'m> = TypedMessages<'m, InputItem>;

/// Typed messages as a conversation, for [`clear`](Self::clear), or for a
/// [`Turn`] with more that is known about the request.
///
/// They are read as the JSON that async-openai sends, so they count and are cleared as in a loop over
/// [`OpenAiChat`](offcut::format::OpenAiChat) or [`Responses`](offcut::format::Responses). Only messages that
/// change are parsed again. Content that their type can't hold is not put in.
pub struct TypedMessages<'m, M> {
    typed: &'m mut [M],
    json: Vec<Value>,
}

impl<'m, M: TypedMessage> TypedMessages<'m, M> {
    /// Presents `messages`.
    pub fn new(messages: &'m mut [M]) -> Self {
        // Types of JSON can always be written. If one could not, it would be shown as empty, and stay.
        let json = |message: &M| serde_json::to_value(message).unwrap_or_default();
        Self {
            json: messages.iter().map(json).collect(),
            typed: messages,
        }
    }

    /// Runs the pass before a model call over them, as [`ToolReduction::clear`] does over JSON.
    ///
    /// # Errors
    ///
    /// The same as those of [`ToolReduction::clear`].
    pub async fn clear(mut self, reduction: &ToolReduction) -> Result<Report, OffloadError> {
        reduction.clear_turn(&mut Turn::new(&mut self)).await
    }

    fn change(&mut self, nth: usize, change: impl FnOnce(&mut Value)) {
        let message = self.typed.get_mut(nth).zip(self.json.get_mut(nth));
        let Some((typed, json)) = message else {
            return;
        };
        let mut changed = json.clone();
        change(&mut changed);
        if let Ok(parsed) = M::deserialize(&changed) {
            (*typed, *json) = (parsed, changed);
        }
    }
}

impl<M: TypedMessage> Conversation for TypedMessages<'_, M> {
    fn len(&self) -> usize {
        self.json.len()
    }

    fn visit<'s>(&'s self, message: usize, see: &mut dyn FnMut(Piece<'s>)) {
        if let Some(message) = self.json.get(message) {
            M::FORMAT.visit(message, see);
        }
    }

    fn replace(&mut self, message: usize, index: usize, new: NewPiece) {
        self.change(message, |json| M::FORMAT.replace(json, index, new));
    }

    fn has_text(&self, message: usize, text: usize) -> bool {
        let message = self.json.get(message);
        message.is_some_and(|message| M::FORMAT.has_text(message, text))
    }
}

/// Shows the number of messages, never the content.
impl<M: TypedMessage> fmt::Debug for TypedMessages<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self as &dyn Conversation)
    }
}

impl TypedChat<'_> {
    /// Creates the message that answers `call` with `content`. Messages of this type hold only text: JSON and links
    /// are written as one, and media become a line that describes them.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the type holds any texts")]
    pub fn tool_message(
        call: &ToolCall,
        content: impl Into<Vec<Part>>,
    ) -> ChatCompletionRequestMessage {
        let texts = content.into().into_iter().map(as_text).map(Part::Text);
        let message = WireFormat::OpenAiChat.tool_message(call, texts.collect(), false);
        serde_json::from_value(message).expect("a tool message")
    }

    /// Converts the `tool_calls` of an answer or of an assistant message.
    #[must_use]
    pub fn tool_calls(calls: &[ChatCompletionMessageToolCalls]) -> Vec<ToolCall> {
        WireFormat::OpenAiChat.tool_calls(&json!({"role": "assistant", "tool_calls": calls}))
    }
}

impl TypedResponses<'_> {
    /// Creates the output item for the function call `call`.
    #[must_use]
    #[expect(clippy::expect_used, reason = "its output is checked")]
    pub fn tool_output(call: &ToolCall, content: impl Into<Vec<Part>>) -> InputItem {
        // Media that the model can't see, and parts of other formats, are shown as text.
        let content = content.into().into_iter().map(|part| match part {
            Part::Media { ref mime, .. } if !mime.starts_with("image/") => as_text(part).into(),
            Part::Opaque(ref value) if InputContent::deserialize(value).is_err() => {
                as_text(part).into()
            }
            part => part,
        });
        let mut item = WireFormat::Responses.tool_message(call, content.collect(), false);
        if FunctionCallOutput::deserialize(&item["output"]).is_err() {
            item["output"] = item["output"].to_string().into();
        }
        serde_json::from_value(item).expect("an output item")
    }
}
