//! This crate's own message type, for loops that have none yet and for tests.

use serde::{Deserialize, Serialize};

use super::{Call, Format, JsonRef, NewPiece, PartRef, Piece, ResultHead, Role};
use crate::content::{Part, ToolCall};

/// A message of a conversation with a model that calls tools.
///
/// ```
/// use offcut::format::Message;
/// let message: Message = serde_json::from_str(
///     r#"{"role":"tool","call_id":"call_1","name":"grep","content":[{"type":"text","value":"3 hits"}]}"#,
/// )?;
/// assert!(matches!(message, Message::Tool { is_error: false, .. }));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Instructions.
    System {
        /// The instructions' parts.
        content: Vec<Part>,
    },
    /// Input of a person.
    User {
        /// The input's parts.
        content: Vec<Part>,
    },
    /// A turn of the model.
    Assistant {
        /// The text that the model writes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<Part>,
        /// The tools that the model calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// The result of one call.
    Tool {
        /// The id of the call that this answers.
        #[serde(default)]
        call_id: String,
        /// The tool's name.
        #[serde(default)]
        name: String,
        /// The content that the tool returned.
        content: Vec<Part>,
        /// True if the tool failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl Message {
    /// A message with instructions.
    pub fn system(text: impl Into<Part>) -> Self {
        Self::System {
            content: vec![text.into()],
        }
    }

    /// A message from a person.
    pub fn user(text: impl Into<Part>) -> Self {
        Self::User {
            content: vec![text.into()],
        }
    }

    /// A message from the model without a call.
    pub fn assistant(text: impl Into<Part>) -> Self {
        Self::Assistant {
            content: vec![text.into()],
            calls: Vec::new(),
        }
    }

    /// A message from the model that calls tools.
    #[must_use]
    pub fn calls(calls: Vec<ToolCall>) -> Self {
        Self::Assistant {
            content: Vec::new(),
            calls,
        }
    }

    /// A message with the result of `call`.
    #[must_use]
    pub fn tool(call: &ToolCall, content: Vec<Part>, is_error: bool) -> Self {
        Self::Tool {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content,
            is_error,
        }
    }
}

/// The format of [`Message`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Format for Plain {
    type Message = Message;

    fn visit<'m>(&self, message: &'m Message, see: &mut dyn FnMut(Piece<'m>)) {
        let (role, content) = match message {
            Message::System { content } => (Role::System, content),
            Message::User { content } => (Role::User, content),
            Message::Assistant { content, .. } => (Role::Assistant, content),
            Message::Tool { content, .. } => (Role::Tool, content),
        };
        see(Piece::Role(role));
        match message {
            Message::Assistant { calls, .. } => {
                for call in calls {
                    let arguments = JsonRef::Spelled(&call.arguments);
                    see(Piece::Call(Call::new(&call.id, &call.name, arguments)));
                }
            }
            Message::Tool {
                call_id,
                name,
                is_error,
                ..
            } => see(Piece::Result(ResultHead {
                name: (!name.is_empty()).then_some(name),
                is_error: *is_error,
                id: call_id,
                ..ResultHead::default()
            })),
            Message::System { .. } | Message::User { .. } => {}
        }
        for part in content {
            see(Piece::Content(PartRef::from(part)));
        }
    }

    fn replace(&self, message: &mut Message, index: usize, new: NewPiece) {
        let text = nth_text(message, index);
        match (message, new) {
            (Message::Tool { content, .. }, NewPiece::Result(parts)) if index == 0 => {
                *content = parts;
            }
            (Message::Assistant { calls, .. }, NewPiece::Arguments(arguments)) => {
                if let Some(call) = calls.get_mut(index) {
                    call.arguments = arguments;
                }
            }
            (Message::User { content }, NewPiece::UserText(new)) => {
                if let Some(at) = text {
                    content[at] = Part::Text(new);
                }
            }
            _ => {}
        }
    }

    fn has_text(&self, message: &Message, text: usize) -> bool {
        nth_text(message, text).is_some()
    }
}

/// The index of a user's n-th text among the message's parts.
fn nth_text(message: &Message, nth: usize) -> Option<usize> {
    let Message::User { content } = message else {
        return None;
    };
    let is_text = |at: &usize| matches!(content[*at], Part::Text(_));
    (0..content.len()).filter(is_text).nth(nth)
}
