//! The place in a body that holds the conversation.

use std::ops::Range;

use offcut::format::{JsonText, WireFormat};
use offcut::json::{Node, View};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::gateway::exchange::{Exchange, Purpose};

/// Gemini's field for the whole request whose tokens are to be counted.
const COUNTED: &str = "generateContentRequest";
/// Bytes that a value takes while its place is looked for.
const VALUE: usize = 48;

/// The bytes of the request in a body: all of them, or in a count of Gemini's tokens those of the request in it. The
/// search takes at most about `memory` bytes.
pub(crate) fn of_request(exchange: Exchange, text: &str, memory: usize) -> Range<usize> {
    let may_have = exchange.format == WireFormat::Gemini && exchange.purpose == Purpose::Count;
    let inner = || {
        let document = JsonText::parse_within(text, memory / VALUE).ok()??;
        Some(Node::root(&document).get(COUNTED)?.range())
    };
    let is_inside = may_have && text.contains(COUNTED);
    is_inside.then(inner).flatten().unwrap_or(0..text.len())
}

/// The fields of a request that may hold its conversation. Nothing of them is kept.
#[derive(Deserialize)]
struct ConversationFields {
    messages: Option<IgnoredAny>,
    input: Option<IgnoredAny>,
    contents: Option<IgnoredAny>,
}

/// Returns true if a request holds no conversation: the provider keeps it, or the prompt.
pub(crate) fn is_elsewhere(request: &str) -> bool {
    let fields: Result<ConversationFields, _> = serde_json::from_str(request);
    let is_object = request.trim_ascii_start().starts_with('{');
    is_object
        && fields.is_ok_and(|fields| {
            fields.messages.is_none() && fields.input.is_none() && fields.contents.is_none()
        })
}
