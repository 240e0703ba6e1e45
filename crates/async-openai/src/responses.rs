//! Typed items of the Responses API.

use std::collections::VecDeque;

use async_openai::types::responses::{
    CustomToolCallOutputOutput as CustomOutput, EasyInputContent, FunctionCallOutput,
    FunctionCallOutputItemParam, InputContent, InputImageContent, InputItem, InputRole,
    InputTextContent, Item, MessageItem, OutputMessageContent, ReasoningItemContent,
    Role as MessageRole, SummaryPart,
};
use offcut::format::{Arguments, Call, Format, PartRef, Piece, ResultHead, Role};
use offcut::{Part, ToolCall};

use crate::url;

/// The format of [`InputItem`].
///
/// The outputs of function calls and of custom tool calls are slots. Items other than these and calls
/// never change, and only their text is counted: pass the provider's count as
/// [`last_usage`](offcut::Turn::last_usage) to include the rest. New content that is media other
/// than an image becomes a line of text that describes it. If replaced parts have a cache
/// breakpoint, it moves to the last part that is new.
#[derive(Clone, Copy, Debug, Default)]
pub struct TypedResponses;

impl TypedResponses {
    /// Creates the output item for the function call `call`.
    #[must_use]
    pub fn tool_output(call: &ToolCall, content: impl Into<Vec<Part>>) -> InputItem {
        InputItem::Item(Item::FunctionCallOutput(FunctionCallOutputItemParam {
            call_id: Some(call.id.clone()),
            output: match contents(content.into()) {
                Contents::Text(text) => FunctionCallOutput::Text(text),
                Contents::Parts(parts) => FunctionCallOutput::Content(parts),
            },
            id: None,
            status: None,
            name: None,
            namespace: None,
            caller: None,
        }))
    }
}

impl Format for TypedResponses {
    type Message = InputItem;

    fn visit<'m>(&self, item: &'m InputItem, see: &mut dyn FnMut(Piece<'m>)) {
        let item = match item {
            InputItem::Item(item) => item,
            InputItem::EasyMessage(message) => {
                see(Piece::Role(role_of(message.role)));
                return match &message.content {
                    EasyInputContent::Text(text) => see(Piece::Content(PartRef::Text(text))),
                    EasyInputContent::ContentList(parts) => visit_parts(parts, see),
                };
            }
            InputItem::ItemReference(_) => return see(Piece::Role(Role::Assistant)),
            InputItem::CompactionTrigger(_)
            | InputItem::Program(_)
            | InputItem::ProgramOutput(_) => {
                return see(Piece::Role(Role::System));
            }
        };
        match item {
            Item::Message(MessageItem::Input(message)) => {
                see(Piece::Role(if message.role == InputRole::User {
                    Role::User
                } else {
                    Role::System
                }));
                visit_parts(&message.content, see);
            }
            Item::Message(MessageItem::Output(message)) => {
                see(Piece::Role(Role::Assistant));
                message.content.iter().for_each(|part| {
                    see(Piece::Content(PartRef::Text(match part {
                        OutputMessageContent::OutputText(part) => &part.text,
                        OutputMessageContent::Refusal(part) => &part.refusal,
                    })));
                });
            }
            Item::Reasoning(item) => {
                see(Piece::Role(Role::Assistant));
                let summary = item
                    .summary
                    .iter()
                    .map(|SummaryPart::SummaryText(part)| &part.text);
                let content = item
                    .content
                    .iter()
                    .flatten()
                    .map(|ReasoningItemContent::ReasoningText(part)| &part.text);
                summary
                    .chain(content)
                    .for_each(|text| see(Piece::Content(PartRef::Text(text))));
            }
            Item::FunctionCall(call) => visit_call(&call.call_id, &call.name, &call.arguments, see),
            Item::CustomToolCall(call) => visit_call(&call.call_id, &call.name, &call.input, see),
            Item::FunctionCallOutput(item) => {
                visit_result(item.call_id.as_deref().unwrap_or_default(), see);
                match &item.output {
                    FunctionCallOutput::Text(text) => see(Piece::Content(PartRef::Text(text))),
                    FunctionCallOutput::Content(parts) => visit_parts(parts, see),
                }
            }
            Item::CustomToolCallOutput(item) => {
                visit_result(&item.call_id, see);
                match &item.output {
                    CustomOutput::Text(text) => see(Piece::Content(PartRef::Text(text))),
                    CustomOutput::List(parts) => visit_parts(parts, see),
                }
            }
            // The assistant's turn ends before these; items after them belong to the next one.
            Item::ComputerCallOutput(_)
            | Item::LocalShellCallOutput(_)
            | Item::ShellCallOutput(_)
            | Item::ApplyPatchCallOutput(_)
            | Item::McpApprovalResponse(_) => see(Piece::Role(Role::User)),
            Item::FileSearchCall(_)
            | Item::ComputerCall(_)
            | Item::WebSearchCall(_)
            | Item::ToolSearchCall(_)
            | Item::Compaction(_)
            | Item::ImageGenerationCall(_)
            | Item::CodeInterpreterCall(_)
            | Item::LocalShellCall(_)
            | Item::ShellCall(_)
            | Item::ApplyPatchCall(_)
            | Item::McpListTools(_)
            | Item::McpApprovalRequest(_)
            | Item::McpCall(_) => see(Piece::Role(Role::Assistant)),
            Item::ToolSearchOutput(_) | Item::AdditionalTools(_) | Item::ConfigurationUpdate(_) => {
                see(Piece::Role(Role::System));
            }
        }
    }

    fn replace_result(&self, item: &mut InputItem, slot: usize, parts: Vec<Part>) {
        match item {
            InputItem::Item(Item::FunctionCallOutput(item)) if slot == 0 => {
                match &mut item.output {
                    FunctionCallOutput::Content(old) if !parts.is_empty() => {
                        replace_parts(old, parts);
                    }
                    output => {
                        *output = match contents(parts) {
                            Contents::Text(text) => FunctionCallOutput::Text(text),
                            Contents::Parts(parts) => FunctionCallOutput::Content(parts),
                        }
                    }
                }
            }
            InputItem::Item(Item::CustomToolCallOutput(item)) if slot == 0 => {
                match &mut item.output {
                    CustomOutput::List(old) if !parts.is_empty() => replace_parts(old, parts),
                    output => {
                        *output = match contents(parts) {
                            Contents::Text(text) => CustomOutput::Text(text),
                            Contents::Parts(parts) => CustomOutput::List(parts),
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn replace_arguments(&self, item: &mut InputItem, call: usize, arguments: String) {
        match item {
            InputItem::Item(Item::FunctionCall(item)) if call == 0 => item.arguments = arguments,
            InputItem::Item(Item::CustomToolCall(item)) if call == 0 => item.input = arguments,
            _ => {}
        }
    }
}

fn role_of(role: MessageRole) -> Role {
    match role {
        MessageRole::User => Role::User,
        MessageRole::Assistant => Role::Assistant,
        MessageRole::System | MessageRole::Developer => Role::System,
    }
}

fn visit_call<'m>(id: &'m str, name: &'m str, arguments: &'m str, see: &mut dyn FnMut(Piece<'m>)) {
    see(Piece::Role(Role::Assistant));
    see(Piece::Call(Call {
        id,
        name,
        arguments: Arguments::Text(arguments),
        is_signed: false,
        is_for_program: false,
        is_fixed: false,
    }));
}

fn visit_result<'m>(id: &'m str, see: &mut dyn FnMut(Piece<'m>)) {
    see(Piece::Role(Role::Tool));
    see(Piece::Result(ResultHead {
        id,
        name: None,
        is_error: false,
        is_for_program: false,
        is_fixed: false,
    }));
}

fn visit_parts<'m>(parts: &'m [InputContent], see: &mut dyn FnMut(Piece<'m>)) {
    for part in parts {
        match part {
            InputContent::InputText(part) => see(Piece::Content(PartRef::Text(&part.text))),
            InputContent::InputImage(part) => {
                let url = part.image_url.as_deref().or(part.file_id.as_deref());
                url.into_iter()
                    .for_each(|url| see(Piece::Content(url::read(url))));
            }
            InputContent::InputFile(part) => {
                let url = part
                    .file_data
                    .as_deref()
                    .or(part.file_url.as_deref())
                    .or(part.file_id.as_deref());
                url.into_iter()
                    .for_each(|url| see(Piece::Content(url::read(url))));
            }
        }
    }
}

/// Content in the form in which it is written: text or a list of parts.
enum Contents {
    Text(String),
    Parts(Vec<InputContent>),
}

/// Converts parts. A single text becomes a string, which every provider accepts.
fn contents(parts: Vec<Part>) -> Contents {
    match <[Part; 1]>::try_from(parts) {
        Ok([Part::Text(text)]) => Contents::Text(text),
        Ok([part]) => Contents::Parts(vec![write_part(part)]),
        Err(parts) if parts.is_empty() => Contents::Text(String::new()),
        Err(parts) => Contents::Parts(parts.into_iter().map(write_part).collect()),
    }
}

/// Replaces the parts of a list. Old parts among the new ones stay as they are. The last cache breakpoint
/// of the others moves to the last part that is new.
fn replace_parts(old: &mut Vec<InputContent>, parts: Vec<Part>) {
    let mut left: VecDeque<InputContent> = std::mem::take(old).into();
    let (mut mark, mut last_new) = (None, None);
    let mut leave = |mut part: InputContent| mark = mark_of(&mut part).take().or(mark.take());
    for part in parts {
        if let Some(at) = left.iter().position(|old| shows(old, &part)) {
            left.drain(..at).for_each(&mut leave);
            old.extend(left.pop_front());
        } else {
            last_new = Some(old.len());
            old.push(write_part(part));
        }
    }
    left.into_iter().for_each(leave);
    if let Some(last) = last_new {
        *mark_of(&mut old[last]) = mark;
    }
}

fn shows(content: &InputContent, part: &Part) -> bool {
    let mut is_same = false;
    visit_parts(std::slice::from_ref(content), &mut |piece| {
        is_same = matches!(piece, Piece::Content(content) if content == *part);
    });
    is_same
}

fn mark_of(
    part: &mut InputContent,
) -> &mut Option<async_openai::types::responses::PromptCacheBreakpointConfig> {
    match part {
        InputContent::InputText(part) => &mut part.prompt_cache_breakpoint,
        InputContent::InputImage(part) => &mut part.prompt_cache_breakpoint,
        InputContent::InputFile(part) => &mut part.prompt_cache_breakpoint,
    }
}

fn write_part(part: Part) -> InputContent {
    let image = |url| {
        InputContent::InputImage(InputImageContent {
            image_url: Some(url),
            ..Default::default()
        })
    };
    match part {
        Part::Media { mime, data } if mime.starts_with("image/") => image(url::write(&mime, &data)),
        Part::Link { mime, url }
            if mime
                .as_deref()
                .is_none_or(|mime| mime.starts_with("image/")) =>
        {
            image(url)
        }
        part => InputContent::InputText(InputTextContent {
            text: url::as_text(part),
            prompt_cache_breakpoint: None,
        }),
    }
}
