//! A message as its format shows it.

use offcut::format::{Call, Format, PartRef, Piece, ResultHead, Role};
use serde_json::Value;

/// A part of a message that can be replaced, by its number among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaceable {
    /// The content of a result.
    Slot(usize),
    /// The arguments of a call.
    Call(usize),
    /// A text of a user.
    Text(usize),
}

/// The pieces of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) begins_with_role: bool,
    pieces: Vec<SeenPiece>,
    pub(super) slots: usize,
    pub(super) calls: usize,
    pub(super) texts: usize,
    pub(super) signed_calls: Vec<usize>,
    /// Those that must not change.
    pub(super) fixed: Vec<Replaceable>,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
struct SeenPiece {
    /// The part that it belongs to; `None` for roles, ids, names, marks and other content.
    of: Option<Replaceable>,
    all: String,
    text: Option<String>,
    json: Option<Value>,
}

impl Seen {
    pub(super) fn of<F: Format>(format: &F, message: &F::Message) -> Self {
        let mut seen = Self::default();
        let (mut is_open, mut is_users, mut is_first) = (false, false, true);
        format.visit(message, &mut |piece| {
            seen.begins_with_role |= is_first && matches!(piece, Piece::Role(_));
            is_first = false;
            let is_content = matches!(piece, Piece::Content(_));
            match piece {
                Piece::Role(role) => {
                    (is_open, is_users) = (false, role == Role::User);
                    seen.note(None, format!("{role:?}"));
                    return;
                }
                Piece::Result(ResultHead {
                    id,
                    name,
                    is_error,
                    is_for_program: _,
                    is_fixed,
                }) => {
                    is_open = true;
                    seen.note(
                        None,
                        format!("result {id:?} {name:?} {is_error} {is_fixed}"),
                    );
                    let slot = Replaceable::Slot(seen.slots);
                    seen.fixed.extend(is_fixed.then_some(slot));
                    seen.slots += 1;
                }
                Piece::Call(Call {
                    id,
                    name,
                    arguments,
                    is_signed,
                    is_for_program: _,
                    is_fixed,
                }) => {
                    seen.note(None, format!("call {id:?} {name:?} {is_signed} {is_fixed}"));
                    // Parsed if they are JSON.
                    let text = || arguments.to_string().into();
                    let call = Replaceable::Call(seen.calls);
                    seen.note(Some(call), String::new()).json =
                        Some(arguments.to_value().unwrap_or_else(text));
                    seen.signed_calls.extend(is_signed.then_some(seen.calls));
                    seen.fixed.extend(is_fixed.then_some(call));
                    seen.calls += 1;
                }
                Piece::Content(part) => {
                    let of = match part {
                        _ if is_open => Some(Replaceable::Slot(seen.slots - 1)),
                        PartRef::Text(_) if is_users => {
                            seen.texts += 1;
                            Some(Replaceable::Text(seen.texts - 1))
                        }
                        _ => None,
                    };
                    let piece = seen.note(of, format!("{part:?}"));
                    match part {
                        PartRef::Text(text) => piece.text = Some(text.to_owned()),
                        PartRef::Json(json) => piece.json = json.to_value(),
                        _ => {}
                    }
                }
                // A kind of piece newer than this crate. It must not change.
                piece => _ = seen.note(None, format!("{piece:?}")),
            }
            is_users &= is_content;
        });
        seen
    }

    fn note(&mut self, of: Option<Replaceable>, all: String) -> &mut SeenPiece {
        let (text, json) = (None, None);
        self.pieces.push(SeenPiece {
            of,
            all,
            text,
            json,
        });
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    /// The calls that may be replaced, which signed ones never are.
    pub(super) fn open_calls(&self) -> impl Iterator<Item = usize> {
        (0..self.calls).filter(|call| !self.signed_calls.contains(call))
    }

    fn pieces_of(&self, one: Replaceable) -> impl Iterator<Item = &SeenPiece> {
        self.pieces
            .iter()
            .filter(move |piece| piece.of == Some(one))
    }

    /// The texts of a part; `None` if it holds anything else.
    pub(super) fn texts_of(&self, one: Replaceable) -> Option<Vec<&str>> {
        self.pieces_of(one)
            .map(|piece| piece.text.as_deref())
            .collect()
    }

    /// Returns true if a part holds `json`, as JSON or as its text.
    pub(super) fn holds_json(&self, one: Replaceable, json: &Value) -> bool {
        self.pieces_of(one).any(|piece| {
            let text = piece.text.as_deref();
            let spelled = text.and_then(|text| serde_json::from_str(text).ok());
            piece.json.as_ref() == Some(json) || spelled.as_ref() == Some(json)
        })
    }

    /// Returns true if `after` differs in more than the content of one part.
    pub(super) fn has_other_change(&self, after: &Self, one: Replaceable) -> bool {
        let is_other = |piece: &&SeenPiece| piece.of != Some(one);
        let others = self.pieces.iter().filter(is_other);
        !others.eq(after.pieces.iter().filter(is_other))
    }
}
