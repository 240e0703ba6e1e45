//! A message as its format shows it.

use std::fmt::Write;

use offcut::format::{Call, Format, PartRef, Piece, ResultHead};
use serde_json::Value;

/// The content of a message, with each replaceable part separate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) begins_with_role: bool,
    /// Roles, results, calls and other pieces in order, without the content of slots and calls.
    pub(super) rest: String,
    pub(super) slots: Vec<Vec<Piecemeal>>,
    /// The slots that must not change.
    pub(super) fixed_slots: Vec<usize>,
    pub(super) calls: Vec<CallSeen>,
}

/// A part of a slot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piecemeal {
    pub(super) text: Option<String>,
    pub(super) json: Option<Value>,
    pub(super) all: String,
}

/// A call, without its id and its tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallSeen {
    /// The arguments, parsed if they are JSON.
    pub(super) arguments: Value,
    pub(super) is_signed: bool,
    pub(super) is_fixed: bool,
}

impl Seen {
    pub(super) fn of<F: Format>(format: &F, message: &F::Message) -> Self {
        let mut seen = Self::default();
        let (mut is_open, mut is_first) = (false, true);
        format.visit(message, &mut |piece| {
            seen.begins_with_role |= is_first && matches!(piece, Piece::Role(_));
            is_first = false;
            match piece {
                Piece::Role(role) => {
                    is_open = false;
                    seen.note(format_args!("{role:?}"));
                }
                Piece::Result(ResultHead {
                    id,
                    name,
                    is_error,
                    is_for_program: _,
                    is_fixed,
                }) => {
                    is_open = true;
                    seen.note(format_args!("result {id:?} {name:?} {is_error} {is_fixed}"));
                    if is_fixed {
                        seen.fixed_slots.push(seen.slots.len());
                    }
                    seen.slots.push(Vec::new());
                }
                Piece::Call(Call {
                    id,
                    name,
                    arguments,
                    is_signed,
                    is_for_program: _,
                    is_fixed,
                }) => {
                    seen.note(format_args!("call {id:?} {name:?} {is_signed} {is_fixed}"));
                    let text = || arguments.to_string().into();
                    let arguments = arguments.to_value().unwrap_or_else(text);
                    seen.calls.push(CallSeen {
                        arguments,
                        is_signed,
                        is_fixed,
                    });
                }
                Piece::Content(part) => {
                    let (text, json) = match part {
                        PartRef::Text(text) => (Some(text.to_owned()), None),
                        PartRef::Json(json) => (None, json.to_value()),
                        _ => (None, None),
                    };
                    match seen.slots.last_mut().filter(|_| is_open) {
                        Some(slot) => slot.push(Piecemeal {
                            text,
                            json,
                            all: format!("{part:?}"),
                        }),
                        None => seen.note(format_args!("{part:?}")),
                    }
                }
                // A kind of piece newer than this crate. It must not change.
                piece => seen.note(format_args!("{piece:?}")),
            }
        });
        seen
    }

    fn note(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.rest, "{what}");
    }

    pub(super) fn texts(&self, slot: usize) -> Option<Vec<&str>> {
        self.slots
            .get(slot)?
            .iter()
            .map(|part| part.text.as_deref())
            .collect()
    }

    /// Returns true if the slot holds `json`, as JSON or as its text.
    pub(super) fn holds_json(&self, slot: usize, json: &Value) -> bool {
        self.slots[slot].iter().any(|part| {
            let spelled = part
                .text
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok());
            part.json.as_ref() == Some(json) || spelled.as_ref() == Some(json)
        })
    }
}
