//! Converts messages of any format to this program's own.

use std::collections::HashMap;

use offcut::ToolCall;
use offcut::format::{Format, Message, Piece, Role, WireFormat};
use serde_json::Value;

/// Reads a document's messages: a list of messages in any wire format, or an object with one. Returns
/// `None` for other documents.
pub(super) fn of_document(document: &Value) -> Option<Vec<Message>> {
    let format = WireFormat::detect(document)?;
    let instructions = instructions(document).map(Message::system);
    let mut messages: Vec<Message> = instructions.into_iter().collect();
    messages.extend(read(format, WireFormat::messages(&mut document.clone())?));
    Some(messages)
}

/// Returns true if a message is a turn of the assistant.
pub(super) fn is_turn(message: &Message) -> bool {
    matches!(message, Message::Assistant { .. })
}

/// Returns the instructions that are sent with the messages but are not one of them.
fn instructions(document: &Value) -> Option<String> {
    let mut fields = "system instructions system_instruction systemInstruction".split(' ');
    let value = fields.find_map(|field| document.get(field))?;
    let text_of = |value: &Value| Some(value.as_str().or(value["text"].as_str())?.to_owned());
    text_of(value).or_else(|| {
        let blocks = value.get("parts").unwrap_or(value).as_array()?;
        let texts: Vec<String> = blocks.iter().filter_map(text_of).collect();
        Some(texts.join("\n"))
    })
}

/// Reads `raw`, message by message, as `format` sees it.
pub(super) fn read(format: WireFormat, raw: &[Value]) -> Vec<Message> {
    // A turn in this format is several items: reasoning, text and calls.
    let is_in_items = format == WireFormat::Responses;
    let mut messages = Vec::new();
    // Names of the newest calls, by id.
    let mut names = HashMap::new();
    for message in raw {
        format.visit(message, &mut |piece| {
            let goes_on = is_in_items && matches!(messages.last(), Some(Message::Assistant { .. }));
            if !(goes_on && matches!(piece, Piece::Role(Role::Assistant))) {
                take(piece, &mut messages, &mut names);
            }
        });
    }
    messages
}

fn take(piece: Piece<'_>, messages: &mut Vec<Message>, names: &mut HashMap<String, String>) {
    let content = Vec::new();
    match piece {
        Piece::Role(Role::System) => messages.push(Message::System { content }),
        Piece::Role(Role::User) => messages.push(Message::User { content }),
        Piece::Role(Role::Assistant) => messages.push(Message::Assistant {
            content,
            calls: Vec::new(),
        }),
        // Its results become the messages.
        Piece::Role(Role::Tool) => {}
        Piece::Result(head) => messages.push(Message::Tool {
            call_id: head.id.to_owned(),
            name: match head.name {
                Some(name) if !name.is_empty() => name.to_owned(),
                _ => names.get(head.id).cloned().unwrap_or_default(),
            },
            content,
            is_error: head.is_error,
        }),
        Piece::Call(call) => {
            if let Some(Message::Assistant { calls, .. }) = messages.last_mut() {
                let arguments = call.arguments.to_string();
                names.insert(call.id.to_owned(), call.name.to_owned());
                calls.push(ToolCall::new(call.id, call.name, arguments));
            }
        }
        Piece::Content(part) => {
            if let Some(
                Message::System { content }
                | Message::User { content }
                | Message::Assistant { content, .. }
                | Message::Tool { content, .. },
            ) = messages.last_mut()
            {
                content.push(part.into());
            }
        }
        _ => {}
    }
}
