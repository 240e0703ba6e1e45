//! Typed messages of chat completions.

use async_openai::types::chat::{
    ChatCompletionMessageToolCalls as ToolCalls,
    ChatCompletionRequestAssistantMessage as AssistantMessage,
    ChatCompletionRequestAssistantMessageContent as AssistantContent,
    ChatCompletionRequestAssistantMessageContentPart as AssistantPart,
    ChatCompletionRequestDeveloperMessageContent as DeveloperContent,
    ChatCompletionRequestDeveloperMessageContentPart as DeveloperPart,
    ChatCompletionRequestMessage as Message,
    ChatCompletionRequestMessageContentPartText as TextPart,
    ChatCompletionRequestSystemMessageContent as SystemContent,
    ChatCompletionRequestSystemMessageContentPart as SystemPart,
    ChatCompletionRequestToolMessage as ToolMessage,
    ChatCompletionRequestToolMessageContent as ToolContent,
    ChatCompletionRequestToolMessageContentPart as ToolPart,
    ChatCompletionRequestUserMessageContent as UserContent,
    ChatCompletionRequestUserMessageContentPart as UserPart,
};
use offcut::format::{Arguments, Call, Format, PartRef, Piece, ResultHead, Role};
use offcut::{Part, ToolCall};

use crate::url;

/// The format of [`ChatCompletionRequestMessage`](Message).
///
/// Tool messages of this type hold only text. Other parts become their text; media, which have
/// none, become a line of text that describes them. If replaced texts have a cache breakpoint, it
/// moves to the last new text. Audio and files from the user are not counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct TypedChat;

impl TypedChat {
    /// Creates the message that answers `call` with `content`.
    #[must_use]
    pub fn tool_message(call: &ToolCall, content: impl Into<Vec<Part>>) -> Message {
        Message::Tool(ToolMessage {
            content: tool_content(content.into()),
            tool_call_id: call.id.clone(),
        })
    }

    /// Converts the `tool_calls` of an answer or of an assistant message.
    #[must_use]
    pub fn tool_calls(calls: &[ToolCalls]) -> Vec<ToolCall> {
        let text = |call: &ToolCalls| {
            let Call {
                id,
                name,
                arguments: Arguments::Text(arguments),
                ..
            } = read_call(call)
            else {
                return None;
            };
            Some(ToolCall::new(id, name, arguments))
        };
        calls.iter().filter_map(text).collect()
    }
}

impl Format for TypedChat {
    type Message = Message;

    fn visit<'m>(&self, message: &'m Message, see: &mut dyn FnMut(Piece<'m>)) {
        let say = |see: &mut dyn FnMut(Piece<'m>), text: &'m str| {
            see(Piece::Content(PartRef::Text(text)));
        };
        match message {
            Message::System(message) => {
                see(Piece::Role(Role::System));
                match &message.content {
                    SystemContent::Text(text) => say(see, text),
                    SystemContent::Array(parts) => parts
                        .iter()
                        .for_each(|SystemPart::Text(part)| say(see, &part.text)),
                }
            }
            Message::Developer(message) => {
                see(Piece::Role(Role::System));
                match &message.content {
                    DeveloperContent::Text(text) => say(see, text),
                    DeveloperContent::Array(parts) => {
                        parts
                            .iter()
                            .for_each(|DeveloperPart::Text(part)| say(see, &part.text));
                    }
                }
            }
            Message::User(message) => {
                see(Piece::Role(Role::User));
                match &message.content {
                    UserContent::Text(text) => say(see, text),
                    UserContent::Array(parts) => parts.iter().for_each(|part| match part {
                        UserPart::Text(part) => say(see, &part.text),
                        UserPart::ImageUrl(part) => {
                            see(Piece::Content(url::read(&part.image_url.url)));
                        }
                        UserPart::InputAudio(_) | UserPart::File(_) => {}
                    }),
                }
            }
            Message::Assistant(message) => visit_assistant(message, see),
            Message::Tool(message) => {
                see(Piece::Role(Role::Tool));
                see(Piece::Result(ResultHead {
                    id: &message.tool_call_id,
                    name: None,
                    is_error: false,
                    is_for_program: false,
                    is_fixed: false,
                }));
                match &message.content {
                    ToolContent::Text(text) => say(see, text),
                    ToolContent::Array(parts) => parts
                        .iter()
                        .for_each(|ToolPart::Text(part)| say(see, &part.text)),
                }
            }
            Message::Function(message) => {
                see(Piece::Role(Role::Tool));
                see(Piece::Result(ResultHead {
                    id: "",
                    name: Some(&message.name),
                    is_error: false,
                    is_for_program: false,
                    is_fixed: false,
                }));
                if let Some(text) = &message.content {
                    say(see, text);
                }
            }
        }
    }

    fn replace_result(&self, message: &mut Message, slot: usize, parts: Vec<Part>) {
        match message {
            Message::Tool(message) if slot == 0 => match &mut message.content {
                ToolContent::Array(old) if !parts.is_empty() => {
                    let mark = old
                        .iter_mut()
                        .rev()
                        .find_map(|ToolPart::Text(part)| part.prompt_cache_breakpoint.take());
                    *old = parts.into_iter().map(text_part).collect();
                    if let Some(ToolPart::Text(last)) = old.last_mut() {
                        last.prompt_cache_breakpoint = mark;
                    }
                }
                content => *content = tool_content(parts),
            },
            Message::Function(message) if slot == 0 => {
                message.content = Some(
                    parts
                        .into_iter()
                        .map(url::as_text)
                        .collect::<Vec<_>>()
                        .join("\n"),
                );
            }
            _ => {}
        }
    }

    #[expect(deprecated, reason = "old conversations contain `function_call`")]
    fn replace_arguments(&self, message: &mut Message, call: usize, arguments: String) {
        let Message::Assistant(message) = message else {
            return;
        };
        match message
            .tool_calls
            .as_mut()
            .filter(|calls| !calls.is_empty())
        {
            Some(calls) => match calls.get_mut(call) {
                Some(ToolCalls::Function(call)) => call.function.arguments = arguments,
                Some(ToolCalls::Custom(call)) => call.custom_tool.input = arguments,
                None => {}
            },
            None => {
                if let (Some(function), 0) = (&mut message.function_call, call) {
                    function.arguments = arguments;
                }
            }
        }
    }
}

#[expect(deprecated, reason = "old conversations contain `function_call`")]
fn visit_assistant<'m>(message: &'m AssistantMessage, see: &mut dyn FnMut(Piece<'m>)) {
    see(Piece::Role(Role::Assistant));
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    calls
        .iter()
        .for_each(|call| see(Piece::Call(read_call(call))));
    if let (Some(function), true) = (&message.function_call, calls.is_empty()) {
        let arguments = Arguments::Text(&function.arguments);
        see(Piece::Call(Call {
            id: "",
            name: &function.name,
            arguments,
            is_signed: false,
            is_for_program: false,
            is_fixed: false,
        }));
    }
    let mut say = |text: &'m str| see(Piece::Content(PartRef::Text(text)));
    message.refusal.as_deref().into_iter().for_each(&mut say);
    match &message.content {
        None => {}
        Some(AssistantContent::Text(text)) => say(text),
        Some(AssistantContent::Array(parts)) => parts.iter().for_each(|part| match part {
            AssistantPart::Text(part) => say(&part.text),
            AssistantPart::Refusal(part) => say(&part.refusal),
        }),
    }
}

fn read_call(call: &ToolCalls) -> Call<'_> {
    let (id, name, arguments) = match call {
        ToolCalls::Function(call) => (&call.id, &call.function.name, &call.function.arguments),
        ToolCalls::Custom(call) => (&call.id, &call.custom_tool.name, &call.custom_tool.input),
    };
    Call {
        id,
        name,
        arguments: Arguments::Text(arguments),
        is_signed: false,
        is_for_program: false,
        is_fixed: false,
    }
}

/// A single text becomes a string, which every provider accepts.
fn tool_content(parts: Vec<Part>) -> ToolContent {
    match <[Part; 1]>::try_from(parts) {
        Ok([part]) => ToolContent::Text(url::as_text(part)),
        Err(parts) if parts.is_empty() => ToolContent::Text(String::new()),
        Err(parts) => ToolContent::Array(parts.into_iter().map(text_part).collect()),
    }
}

fn text_part(part: Part) -> ToolPart {
    ToolPart::Text(TextPart {
        text: url::as_text(part),
        prompt_cache_breakpoint: None,
    })
}
