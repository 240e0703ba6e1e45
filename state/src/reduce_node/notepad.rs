//! What a node reads and changes: a plain map, a declared state, or the tool results of a
//! conversation.

use offcut::Part;
use offcut::format::{Format, PartRef, Piece};
use serde_json::{Map, Value, json};

use crate::current::State;
use crate::reducer::BoxError;

/// Something with values under keys, some of which can be condensed into one.
pub trait Notepad: Send + Sync {
    /// The value under `key`, if there is one.
    fn value(&self, key: &str) -> Option<&Value>;

    /// Whether it can hold an output under `output_key` once what is under the keys of `delete` is
    /// gone: asked before the model is, so that no call is wasted.
    ///
    /// # Errors
    ///
    /// It can't.
    fn accepts(&self, output_key: &str, delete: &[String]) -> Result<(), BoxError>;

    /// Puts `output` under `output_key` and deletes what is under the keys of `delete`, all or
    /// nothing. Keys that are not there are no error.
    ///
    /// # Errors
    ///
    /// It can't hold the output. Nothing has changed.
    fn condense(
        &mut self,
        output_key: &str,
        output: String,
        delete: &[String],
    ) -> Result<(), BoxError>;
}

/// Lár's `GraphState`: a map.
impl Notepad for Map<String, Value> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.get(key)
    }

    fn accepts(&self, _: &str, _: &[String]) -> Result<(), BoxError> {
        Ok(())
    }

    fn condense(
        &mut self,
        output_key: &str,
        output: String,
        delete: &[String],
    ) -> Result<(), BoxError> {
        for key in delete {
            self.remove(key);
        }
        self.insert(output_key.to_owned(), Value::String(output));
        Ok(())
    }
}

/// The output is an update of its field, merged by its reducer. A deleted field is back at its
/// default, and one that holds null, or was never set and has no default, is not there.
impl Notepad for State {
    fn value(&self, key: &str) -> Option<&Value> {
        let is_empty = |value: &Value| match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        self.get(key)
            .filter(|value| !value.is_null() && (self.is_set(key) || !is_empty(value)))
    }

    fn accepts(&self, output_key: &str, _: &[String]) -> Result<(), BoxError> {
        match self.schema().field(output_key) {
            None => Err(format!("there is no field `{output_key}`: declare it").into()),
            // What other reducers make of a text only they know.
            Some(field) if !field.reducer.folds() && !field.of.fits(&json!("")) => Err(format!(
                "the field `{output_key}` takes {}: declare it as `str`",
                field.of.described()
            )
            .into()),
            Some(_) => Ok(()),
        }
    }

    fn condense(
        &mut self,
        output_key: &str,
        output: String,
        delete: &[String],
    ) -> Result<(), BoxError> {
        let planned = self.plan([json!({ output_key: output })])?;
        for key in delete {
            self.unset(key);
        }
        self.commit(planned);
        Ok(())
    }
}

/// The tool results of a conversation under names of their own, for a node that condenses several
/// into one.
///
/// The condensed text takes the place of the first of them, in the order of the conversation; the
/// others say where it is, unless that would be longer than they are (L3). So each call keeps its
/// result, and ids, order and error marks stay (L5). The key of the output is not used.
///
/// ```
/// use offcut::format::{Message, Plain};
/// use offcut_state::{Notepad, ToolResults};
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
/// let other = "[condensed, with others, in the result of call_1]";
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
    /// Message and slot.
    place: (usize, usize),
}

/// A tool result that can't be condensed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolResultError {
    /// The conversation has no result of this call.
    #[error("there is no result of the call `{call_id}`")]
    Missing {
        /// The call's id.
        call_id: String,
    },
    /// It holds more than text, which the model could not be shown and which would be lost.
    #[error("the result of the call `{call_id}` holds more than text: leave it out")]
    NotText {
        /// The call's id.
        call_id: String,
    },
}

impl<'a, F: Format> ToolResults<'a, F> {
    /// The results of `messages`; none has a name yet.
    pub fn new(format: &'a F, messages: &'a mut [F::Message]) -> Self {
        Self {
            format,
            messages,
            results: Vec::new(),
        }
    }

    /// Names the result of a call, the newest one where the id repeats. JSON parts count as their
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

    /// The place and the parts of the newest result of a call.
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

impl<F: Format> Notepad for ToolResults<'_, F> {
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
        Err("none of `input_keys` is the name of a tool result: the output has no place".into())
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
                "[condensed, with others, in the result of {}]",
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
