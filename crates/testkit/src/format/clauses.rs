//! Clauses that hold for any message, one function each.

use std::fmt::Display;

use bytes::Bytes;
use offcut::Part;
use offcut::format::{Format, NewPiece};
use serde_json::json;

use super::seen::{Replaceable, Seen};

/// Tells whether a provider would send such a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClauseShape {
    Good,
    /// Replacements may have no effect.
    Malformed,
}

pub(super) const HINT: &str = "[a text in place of a result, with \"quotes\" and a line\nfeed]";

/// A text unlike [`HINT`], also in length.
const OTHER: &str = "[another text]";

/// A message whose format is held to the contract.
pub(super) struct Subject<'m, F: Format> {
    pub(super) format: &'m F,
    pub(super) message: &'m F::Message,
    /// Its index.
    pub(super) at: usize,
}

impl<F: Format> Subject<'_, F> {
    /// Ends the suite because the format breaks `clause` at the message, whose content is not shown,
    /// since it may be long.
    #[track_caller]
    pub(super) fn fail(&self, clause: &str, what: impl Display) -> ! {
        let at = self.at;
        panic!("the format breaks the contract, clause `{clause}`, with message {at}: {what}")
    }

    #[track_caller]
    pub(super) fn check(&self, holds: bool, clause: &str, what: impl Display) {
        if !holds {
            self.fail(clause, what);
        }
    }

    pub(super) fn seen(&self) -> Seen {
        Seen::of(self.format, self.message)
    }

    /// The message after a slot was replaced.
    pub(super) fn with_result(&self, slot: usize, parts: Vec<Part>) -> F::Message {
        let mut changed = self.message.clone();
        self.format
            .replace(&mut changed, slot, NewPiece::Result(parts));
        changed
    }

    /// The message after the arguments of a call were replaced.
    pub(super) fn with_arguments(&self, call: usize, arguments: String) -> F::Message {
        let mut changed = self.message.clone();
        self.format
            .replace(&mut changed, call, NewPiece::Arguments(arguments));
        changed
    }
}

impl<F: Format<Message: PartialEq>> Subject<'_, F> {
    pub(super) fn all_clauses(&self, shape: ClauseShape) -> Seen {
        let seen = self.is_seen();
        for slot in 0..seen.slots {
            self.result_is_replaced(&seen, slot, shape);
        }
        for call in seen.open_calls() {
            self.arguments_are_replaced(&seen, call, shape);
        }
        self.texts_are_replaced(&seen);
        self.what_is_not_there_is_left_alone(&seen);
        seen
    }

    fn is_seen(&self) -> Seen {
        let seen = self.seen();
        self.check(
            seen.begins_with_role,
            "a message begins with a role",
            "its first piece is not a role, or it has none",
        );
        self.check(
            self.seen() == seen,
            "the same message gives the same pieces",
            "two visits give different pieces",
        );
        seen
    }

    fn result_is_replaced(&self, seen: &Seen, slot: usize, shape: ClauseShape) {
        const CLAUSE: &str = "results are replaced";
        let place = Replaceable::Slot(slot);
        let replace = |parts: Vec<Part>| {
            let changed = self.with_result(slot, parts);
            let now = Seen::of(self.format, &changed);
            self.check(
                !seen.has_other_change(&now, place),
                CLAUSE,
                format_args!("something else changed with slot {slot}"),
            );
            (changed, now)
        };
        let (mut changed, now) = replace(vec![HINT.into()]);
        if seen.fixed.contains(&place) {
            let is_left = changed == *self.message;
            self.check(
                is_left,
                CLAUSE,
                format_args!("slot {slot} is fixed but was replaced"),
            );
            return;
        }
        let is_left = shape == ClauseShape::Malformed && changed == *self.message;
        self.check(
            is_left || now.texts_of(place) == Some(vec![HINT]),
            CLAUSE,
            format_args!("slot {slot} does not show its new text"),
        );
        let once = changed.clone();
        self.format
            .replace(&mut changed, slot, NewPiece::Result(vec![HINT.into()]));
        self.check(
            changed == once,
            CLAUSE,
            format_args!("slot {slot} differs after the same replacement twice"),
        );
        for text in [OTHER, HINT] {
            self.format
                .replace(&mut changed, slot, NewPiece::Result(vec![text.into()]));
        }
        self.check(
            changed == once,
            CLAUSE,
            format_args!(
                "slot {slot} had a text, then another, then the first again, and the message differs; change nothing but the slot's content"
            ),
        );
        if shape == ClauseShape::Good {
            self.own_text_changes_nothing(seen, &once, slot);
        }

        // A format that can't hold several parts may leave the message unchanged, but must not lose
        // some of them.
        let (several, now) = replace(vec!["one".into(), "two".into()]);
        let shown = now.texts_of(place).unwrap_or_default().concat();
        let is_shown = shown
            .find("one")
            .zip(shown.find("two"))
            .is_some_and(|(one, two)| one < two);
        self.check(
            is_shown || several == *self.message,
            CLAUSE,
            format_args!("slot {slot} does not show two texts in order"),
        );
        let json = json!({"a": [1, null]});
        let (changed, now) = replace(vec![Part::Json(json.clone())]);
        self.check(
            changed == *self.message || now.holds_json(place, &json),
            CLAUSE,
            format_args!(
                "slot {slot} shows JSON that was put there neither as JSON nor as its text, such as `{{\"a\":1}}`"
            ),
        );
        let media = Part::Media {
            mime: "image/png".into(),
            data: Bytes::from_static(&[0, 255]),
        };
        let link = Part::Link {
            mime: None,
            url: "https://example.org/a.png".into(),
        };
        let opaque = Part::Opaque(json!({"type": "unheard of"}));
        for parts in [vec![media], vec![link], vec![opaque], Vec::new()] {
            replace(parts);
        }
    }

    /// Puts a slot's one text back in its place: over itself, and over the text that has replaced it.
    fn own_text_changes_nothing(&self, seen: &Seen, replaced: &F::Message, slot: usize) {
        let Some(&[text]) = seen.texts_of(Replaceable::Slot(slot)).as_deref() else {
            return;
        };
        for (from, what) in [
            (self.message, "was replaced by itself"),
            (replaced, "was put back after another"),
        ] {
            let mut again = from.clone();
            self.format
                .replace(&mut again, slot, NewPiece::Result(vec![text.into()]));
            self.check(
                again == *self.message,
                "everything else stays",
                format_args!(
                    "the one text of slot {slot} {what}, and the message differs; change nothing but the slot's content, and keep its form"
                ),
            );
        }
    }

    fn arguments_are_replaced(&self, seen: &Seen, call: usize, shape: ClauseShape) {
        const CLAUSE: &str = "arguments are replaced";
        let (new, place) = (json!({"_cleared": HINT}), Replaceable::Call(call));
        let changed = self.with_arguments(call, new.to_string());
        let now = Seen::of(self.format, &changed);
        self.check(
            !seen.has_other_change(&now, place),
            CLAUSE,
            format_args!("something else changed with the arguments of call {call}"),
        );
        let is_fixed = seen.fixed.contains(&place);
        let is_left = (shape == ClauseShape::Malformed || is_fixed) && changed == *self.message;
        self.check(
            is_left || !is_fixed && now.holds_json(place, &new),
            CLAUSE,
            format_args!("call {call} does not show its new arguments"),
        );
    }

    fn texts_are_replaced(&self, seen: &Seen) {
        const CLAUSE: &str = "texts are replaced";
        for text in 0..=seen.texts {
            let mut changed = self.message.clone();
            self.format
                .replace(&mut changed, text, NewPiece::UserText(HINT.into()));
            if !self.format.has_text(self.message, text) {
                self.check(
                    changed == *self.message,
                    CLAUSE,
                    format_args!("text {text} was replaced without `has_text`"),
                );
                continue;
            }
            self.check(
                text < seen.texts,
                CLAUSE,
                "`has_text` is true of a text that is not shown",
            );
            let (now, place) = (Seen::of(self.format, &changed), Replaceable::Text(text));
            self.check(
                now.texts_of(place) == Some(vec![HINT]) && !seen.has_other_change(&now, place),
                CLAUSE,
                format_args!("text {text} does not show the new one, or something else changed"),
            );
        }
    }

    fn what_is_not_there_is_left_alone(&self, seen: &Seen) {
        const CLAUSE: &str = "a missing slot or call is left alone";
        for beyond in [0, 1, usize::MAX / 2] {
            let slot = seen.slots.saturating_add(beyond);
            self.check(
                self.with_result(slot, vec![HINT.into()]) == *self.message,
                CLAUSE,
                "replacing a missing slot changed the message",
            );
            let call = seen.calls.saturating_add(beyond);
            self.check(
                self.with_arguments(call, "{}".into()) == *self.message,
                CLAUSE,
                "replacing the arguments of a missing call changed the message",
            );
        }
    }
}
