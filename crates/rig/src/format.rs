//! rig's messages as a format.

use offcut::format::{Call, Data, Format, JsonRef, NewPiece, PartRef, Piece, ResultHead, Role};
use rig::message::{
    AssistantContent, CallId, DocumentSourceKind, Message, MimeType, ProviderCallId, ToolCall,
    ToolFunction, ToolResult, UserContent,
};
use serde_json::Value;

use crate::content::{as_image_part, as_part, from_part};

/// The format of [`rig::message::Message`], for any provider.
///
/// - A user message holds any number of results, and each is a slot, except that a result with an
///   image that is neither base64 nor a URL stays unchanged.
/// - Ids that rig generated because the provider sent none are ignored. Such calls and results are
///   paired by name and order.
/// - The arguments of a call are never replaced if the provider signed it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RigMessages;

impl Format for RigMessages {
    type Message = Message;

    fn visit<'m>(&self, message: &'m Message, see: &mut dyn FnMut(Piece<'m>)) {
        match message {
            Message::System { content } => {
                see(Piece::Role(Role::System));
                see(Piece::Content(PartRef::Text(content)));
            }
            Message::User { content } => visit_user(content, see),
            Message::Assistant(message) => {
                see(Piece::Role(Role::Assistant));
                message.content.iter().filter_map(seen_block).for_each(see);
            }
        }
    }

    fn replace(&self, message: &mut Message, index: usize, new: NewPiece) {
        match (message, new) {
            (Message::User { content }, NewPiece::Result(parts)) => {
                let results = content.iter_mut().filter_map(|item| match item {
                    UserContent::ToolResult(result) if is_slot(result) => Some(result),
                    _ => None,
                });
                if let Some(result) = { results }.nth(index) {
                    result.content = parts.into_iter().map(from_part).collect();
                }
            }
            (Message::Assistant(message), NewPiece::Arguments(arguments)) => {
                let calls = message.content.iter_mut().filter_map(|block| match block {
                    AssistantContent::ToolCall(call) => Some(call),
                    _ => None,
                });
                if let Some(call) = { calls }.nth(index) {
                    call.function = ToolFunction::parse(call.function.name.clone(), &arguments);
                }
            }
            _ => {}
        }
    }
}

fn visit_user<'m>(content: &'m [UserContent], see: &mut dyn FnMut(Piece<'m>)) {
    let mut role = None;
    for item in content {
        match item {
            UserContent::ToolResult(result) => {
                let is_slot = is_slot(result);
                // A slot extends to the next result or role, so content outside slots needs a role
                // before it.
                if role.replace(Role::Tool) != Some(Role::Tool) || !is_slot {
                    see(Piece::Role(Role::Tool));
                }
                if is_slot {
                    let (id, name) = (id_of(&result.call), Some(result.name.as_str()));
                    see(Piece::Result(ResultHead {
                        id,
                        name,
                        is_error: result.is_error,
                        is_for_program: false,
                        is_fixed: false,
                    }));
                }
                result
                    .content
                    .iter()
                    .filter_map(as_part)
                    .for_each(|part| see(Piece::Content(part)));
            }
            item => {
                if role.replace(Role::User) != Some(Role::User) {
                    see(Piece::Role(Role::User));
                }
                seen_item(item)
                    .into_iter()
                    .for_each(|part| see(Piece::Content(part)));
            }
        }
    }
    if role.is_none() {
        see(Piece::Role(Role::User));
    }
}

/// Returns true if all content of `result` can be read. Only then can it be stored and replaced.
fn is_slot(result: &ToolResult) -> bool {
    result
        .content
        .iter()
        .all(|content| as_part(content).is_some())
}

fn id_of(id: &CallId) -> &str {
    id.provider().map_or("", ProviderCallId::as_str)
}

fn seen_block(block: &AssistantContent) -> Option<Piece<'_>> {
    Some(match block {
        AssistantContent::Text(text) => Piece::Content(PartRef::Text(&text.text)),
        AssistantContent::Reasoning(reasoning) => Piece::Content(PartRef::Text(&reasoning.text)),
        AssistantContent::ToolCall(call) => Piece::Call(seen_call(call)),
        AssistantContent::Image(image) => Piece::Content(as_image_part(image)?),
        AssistantContent::Opaque(opaque) => Piece::Content(PartRef::Opaque((&opaque.item).into())),
        _ => return None,
    })
}

fn seen_call(call: &ToolCall) -> Call<'_> {
    let arguments = match &call.function.invalid_arguments {
        Some(text) => JsonRef::Spelled(text),
        None => (&call.function.arguments).into(),
    };
    let is_signed = call
        .native
        .as_ref()
        .is_some_and(|native| has_signature(&native.item));
    Call {
        id: id_of(&call.id),
        name: call.function.name.as_str(),
        arguments,
        is_signed,
        is_for_program: false,
        is_fixed: false,
    }
}

/// Returns true if `item` has a signature: Gemini puts it in `thoughtSignature`, and Gemini's
/// OpenAI-compatible endpoint in `extra_content`. When a call is changed, rig drops the item, and
/// the signature with it.
fn has_signature(item: &Value) -> bool {
    let is_signature = |name: &String| name == "extra_content" || name.ends_with("ignature");
    item.as_object()
        .is_some_and(|fields| fields.keys().any(is_signature))
}

/// Converts part of a user message, so that it is counted. Media other than images are counted by
/// size if they are base64, and not at all otherwise.
fn seen_item(item: &UserContent) -> Option<PartRef<'_>> {
    let (data, mime) = match item {
        UserContent::Text(text) => return Some(PartRef::Text(&text.text)),
        UserContent::Image(image) => return as_image_part(image),
        UserContent::Document(document) => (
            &document.data,
            document.media_type.as_ref().map(MimeType::to_mime_type),
        ),
        UserContent::Audio(audio) => (
            &audio.data,
            audio.media_type.as_ref().map(MimeType::to_mime_type),
        ),
        UserContent::Video(video) => (
            &video.data,
            video.media_type.as_ref().map(MimeType::to_mime_type),
        ),
        UserContent::ToolResult(_) => return None,
    };
    match data {
        DocumentSourceKind::String(text) => Some(PartRef::Text(text)),
        DocumentSourceKind::Base64(data) => Some(PartRef::Media {
            mime: mime.unwrap_or("application/octet-stream"),
            data: Data::Base64(data),
        }),
        _ => None,
    }
}
