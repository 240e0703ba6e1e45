//! The tool results of a conversation as a target.

use std::fmt;

use offcut::ErrorChain;
use offcut::Part;
use offcut::format::{Format, PartRef, Piece};
use serde_json::Value;

use super::notepad::CondenseTarget;
use crate::reducer::BoxError;

/// Tool results of a conversation under names of your own, for a node that condenses several into
/// one.
///
/// The condensed text replaces the first of them, in conversation order. Each of the others then
/// says where it is, if that is shorter than the result (L3). So each call keeps its
/// result, and ids, order and error marks stay (L5). The output key is ignored.
///
/// ```
/// use offcut::format::{Message, Plain};
/// use offcut_state::{CondenseTarget, ToolResults};
/// use offcut::ToolCall;
///
/// let calls = [ToolCall::new("call_1", "grep", "{}"), ToolCall::new("call_2", "read", "{}")];
/// let mut messages = vec![
///     Message::calls(calls.to_vec()),
///     Message::tool(&calls[0], vec!["a long list".into()], false),
///     Message::tool(&calls[1], vec!["a long file".repeat(9).into()], false),
/// ];
/// let mut results = ToolResults::new(&Plain, &mut messages).with("hits", "call_1")?.with("file", "call_2")?;
/// assert_eq!(results.value("hits").unwrap(), "a long list");
/// results.condense("", "in short".into(), &["hits".into(), "file".into()])?;
/// assert_eq!(messages[1], Message::tool(&calls[0], vec!["in short".into()], false));
/// let other = "[condensed with other results; see the result of call_1]";
/// assert_eq!(messages[2], Message::tool(&calls[1], vec![other.into()], false));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
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
}

impl<F: Format> CondenseTarget for ToolResults<'_, F> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.results
            .iter()
            .find(|bound| bound.name == key)
            .map(|bound| &bound.text)
    }

    fn accepts(&self, _: &str, delete: &[String]) -> Result<(), BoxError> {
        if self
            .results
            .iter()
            .any(|bound| delete.contains(&bound.name))
        {
            return Ok(());
        }
        Err("name at least one tool result in `input_keys`, so that the output has a place".into())
    }

    fn condense(
        &mut self,
        output_key: &str,
        output: String,
        delete: &[String],
    ) -> Result<(), BoxError> {
        self.accepts(output_key, delete)?;
        let (mut gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.results)
            .into_iter()
            .partition(|bound| delete.contains(&bound.name));
        self.results = kept;
        gone.sort_by_key(|bound| bound.place);
        gone.dedup_by_key(|bound| bound.place);
        let mut gone = gone.into_iter();
        let Some(first) = gone.next() else {
            return Ok(());
        };
        for bound in gone {
            let text = format!(
                "[condensed with other results; see the result of {}]",
                first.call_id
            );
            if text.len() < bound.text.as_str().map_or(0, str::len) {
                self.put(bound.place, text);
            }
        }
        self.put(first.place, output);
        Ok(())
    }
}

impl<F: Format> ToolResults<'_, F> {
    fn put(&mut self, (message, slot): (usize, usize), text: String) {
        if let Some(message) = self.messages.get_mut(message) {
            self.format
                .replace_result(message, slot, vec![Part::Text(text)]);
        }
    }
}
