//! A node over the tool results of a conversation.

use std::fmt;

use offcut::ErrorChain;
use offcut::Part;
use offcut::format::{Format, NewPiece, PartRef, Piece};
use serde_json::Value;

use super::error::ReduceNodeError;
use super::node::{ReduceNode, Reduced};

/// Tool results of a conversation under names of your own, for a node that condenses several into
/// one.
///
/// The condensed text replaces the first of them, in conversation order. Each of the others then
/// says where it is, if that is shorter than the result (L3). So each call keeps its
/// result, and ids, order and error marks stay (L5).
///
/// ```
/// use offcut::format::{Message, Plain};
/// use offcut_state::{ReduceNode, ToolResults};
/// use offcut::ToolCall;
/// # use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest};
/// # struct Model;
/// # #[async_trait::async_trait] impl ChatModel for Model {
/// #     async fn complete(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
/// #         Ok(ModelReply { message: Message::assistant("in short"), input_tokens: None })
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
///
/// let calls = [ToolCall::new("call_1", "grep", "{}"), ToolCall::new("call_2", "read", "{}")];
/// let mut messages = vec![
///     Message::calls(calls.to_vec()),
///     Message::tool(&calls[0], vec!["a long list".into()], false),
///     Message::tool(&calls[1], vec!["a long file".repeat(9).into()], false),
/// ];
/// let node = ReduceNode::builder(Model, "{hits}\n{file}").input_keys(["hits", "file"]).build()?;
/// let results = ToolResults::new(&Plain, &mut messages).with("hits", "call_1")?.with("file", "call_2")?;
/// results.condense(&node).await?;
/// assert_eq!(messages[1], Message::tool(&calls[0], vec!["in short".into()], false));
/// let other = "[condensed with other results; see the result of call_1]";
/// assert_eq!(messages[2], Message::tool(&calls[1], vec![other.into()], false));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ToolResults<'a, F: Format> {
    format: &'a F,
    messages: &'a mut [F::Message],
    results: Vec<Bound>,
}

#[derive(Debug)]
struct Bound {
    name: String,
    call_id: String,
    text: Value,
    /// Indexes of the message and the slot.
    place: (usize, usize),
}

/// A tool result that can't be condensed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolResultError {
    /// The conversation has no result of this call.
    #[error("there is no result of the call `{call_id}`: check the id")]
    Missing {
        /// The call's id.
        call_id: String,
    },
    /// The result holds more than text, which the model could not be shown and which would be lost.
    #[error("the result of the call `{call_id}` holds more than text: leave it out")]
    NotText {
        /// The call's id.
        call_id: String,
    },
}

impl fmt::Debug for ToolResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
}

impl<'a, F: Format> ToolResults<'a, F> {
    /// Creates an empty set of results from `messages`.
    pub fn new(format: &'a F, messages: &'a mut [F::Message]) -> Self {
        Self {
            format,
            messages,
            results: Vec::new(),
        }
    }

    /// Names the result of a call, the newest one if the id repeats. JSON parts count as their
    /// compact text.
    ///
    /// # Errors
    ///
    /// There is no such result, or it holds more than text.
    pub fn with(mut self, name: impl Into<String>, call_id: &str) -> Result<Self, ToolResultError> {
        let (place, parts) = self
            .newest(call_id)
            .ok_or_else(|| ToolResultError::Missing {
                call_id: call_id.to_owned(),
            })?;
        let mut texts = Vec::new();
        for part in parts {
            texts.push(match part {
                PartRef::Text(text) => text.to_owned(),
                PartRef::Json(value) => value.to_string(),
                _ => {
                    return Err(ToolResultError::NotText {
                        call_id: call_id.to_owned(),
                    });
                }
            });
        }
        let (name, text) = (name.into(), Value::String(texts.join("\n")));
        self.results.retain(|bound| bound.name != name);
        self.results.push(Bound {
            name,
            call_id: call_id.to_owned(),
            text,
            place,
        });
        Ok(self)
    }

    /// Returns the place and the parts of the newest result of a call.
    fn newest(&self, call_id: &str) -> Option<((usize, usize), Vec<PartRef<'_>>)> {
        let mut newest = None;
        for (at, message) in self.messages.iter().enumerate() {
            let (mut slots, mut is_open) = (0, false);
            self.format.visit(message, &mut |piece| match piece {
                Piece::Result(head) => {
                    is_open = head.id == call_id;
                    if is_open {
                        newest = Some(((at, slots), Vec::new()));
                    }
                    slots += 1;
                }
                Piece::Content(part) if is_open => {
                    if let Some((_, parts)) = &mut newest {
                        parts.push(part);
                    }
                }
                Piece::Role(_) => is_open = false,
                _ => {}
            });
        }
        newest
    }

    /// Runs the node over the named results, and puts its output in place of those that are its
    /// input keys. The others stay.
    ///
    /// # Errors
    ///
    /// Those of [`ReduceNode::run`]. The messages are unchanged.
    pub async fn condense(self, node: &ReduceNode) -> Result<Reduced, ReduceNodeError> {
        let named = self.results.iter();
        let mut values = named
            .map(|bound| (bound.name.clone(), bound.text.clone()))
            .collect();
        let reduced = node.run(&mut values).await?;
        let mut gone = self.results;
        gone.retain(|bound| reduced.deleted.contains(&bound.name));
        gone.sort_by_key(|bound| bound.place);
        gone.dedup_by_key(|bound| bound.place);
        for (nth, bound) in gone.iter().enumerate() {
            let mut text = reduced.output.clone();
            if nth > 0 {
                let first = &gone[0].call_id;
                text = format!("[condensed with other results; see the result of {first}]");
                if text.len() >= bound.text.as_str().map_or(0, str::len) {
                    continue;
                }
            }
            let (message, slot) = bound.place;
            let message = &mut self.messages[message];
            self.format
                .replace(message, slot, NewPiece::Result(vec![Part::Text(text)]));
        }
        Ok(reduced)
    }
}
