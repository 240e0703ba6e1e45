//! Clauses that hold for any message, one function each.

use bytes::Bytes;
use offcut::Part;
use offcut::format::{Format, PartRef, Piece, Role};
use serde_json::json;

use super::seen::Seen;

/// Ends the suite because the format breaks `clause` at a message. The message's content is not
/// shown, since it may be long.
#[track_caller]
pub(super) fn fail_clause(clause: &str, at: usize, what: impl AsRef<str>) -> ! {
    panic!(
        "the format breaks the contract, clause `{clause}`, with message {at}: {}",
        what.as_ref()
    )
}

#[track_caller]
pub(super) fn check(holds: bool, clause: &str, at: usize, what: impl FnOnce() -> String) {
    if !holds {
        fail_clause(clause, at, what());
    }
}

/// Tells whether a provider would send such a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClauseShape {
    Good,
    /// Replacements may have no effect.
    Malformed,
}

pub(super) fn all_clauses<F: Format<Message: PartialEq>>(
    format: &F,
    message: &F::Message,
    at: usize,
    shape: ClauseShape,
) -> Seen {
    let seen = is_seen(format, message, at);
    results_are_replaced(format, message, &seen, at, shape);
    arguments_are_replaced(format, message, &seen, at, shape);
    texts_are_replaced(format, message, at);
    what_is_not_there_is_left_alone(format, message, &seen, at);
    seen
}

fn is_seen<F: Format>(format: &F, message: &F::Message, at: usize) -> Seen {
    let (seen, begins_with_role) = Seen::of(format, message);
    check(begins_with_role, "a message begins with a role", at, || {
        "its first piece is not a role, or it has none".into()
    });
    let again = Seen::of(format, message).0;
    check(
        again == seen,
        "the same message gives the same pieces",
        at,
        || "two visits give different pieces".into(),
    );
    seen
}

/// Compares everything but one slot's content and one call's arguments.
fn is_else_the_same(
    before: &Seen,
    after: &Seen,
    slot: Option<usize>,
    call: Option<usize>,
) -> Result<(), String> {
    let others =
        |count: usize, except: Option<usize>| (0..count).filter(move |nth| Some(*nth) != except);
    let counts = |seen: &Seen| (seen.slots.len(), seen.calls.len());
    match () {
        () if before.rest != after.rest => {
            Err("roles, ids, names, marks or content of the message changed".to_owned())
        }
        () if counts(before) != counts(after) => {
            Err("the message has more or fewer results or calls".to_owned())
        }
        () if others(before.slots.len(), slot).any(|nth| before.slots[nth] != after.slots[nth]) => {
            Err("the content of another result changed".to_owned())
        }
        () if others(before.calls.len(), call).any(|nth| before.calls[nth] != after.calls[nth]) => {
            Err("the arguments of another call changed".to_owned())
        }
        () => Ok(()),
    }
}

pub(super) const HINT: &str = "[a text in place of a result, with \"quotes\" and a line\nfeed]";

/// A text unlike [`HINT`], also in length.
const OTHER: &str = "[another text]";

fn results_are_replaced<F: Format<Message: PartialEq>>(
    format: &F,
    message: &F::Message,
    seen: &Seen,
    at: usize,
    shape: ClauseShape,
) {
    const CLAUSE: &str = "replace_result";
    for slot in 0..seen.slots.len() {
        let replace = |parts: Vec<Part>| {
            let mut changed = message.clone();
            format.replace_result(&mut changed, slot, parts);
            let now = Seen::of(format, &changed).0;
            if let Err(what) = is_else_the_same(seen, &now, Some(slot), None) {
                fail_clause(
                    CLAUSE,
                    at,
                    format!("after slot {slot} was replaced, {what}"),
                );
            }
            (changed, now)
        };
        let (mut changed, now) = replace(vec![HINT.into()]);
        if seen.fixed_slots.contains(&slot) {
            check(changed == *message, CLAUSE, at, || {
                format!("slot {slot} is fixed but was replaced")
            });
            continue;
        }
        let is_left = shape == ClauseShape::Malformed && changed == *message;
        check(
            is_left || now.texts(slot) == Some(vec![HINT]),
            CLAUSE,
            at,
            || format!("slot {slot} does not show its new text"),
        );
        let once = changed.clone();
        format.replace_result(&mut changed, slot, vec![HINT.into()]);
        check(changed == once, CLAUSE, at, || {
            format!("slot {slot} differs after the same replacement twice")
        });
        for text in [OTHER, HINT] {
            format.replace_result(&mut changed, slot, vec![text.into()]);
        }
        check(changed == once, CLAUSE, at, || {
            format!(
                "slot {slot} had a text, then another, then the first again, and the message differs; change nothing but the slot's content"
            )
        });
        if shape == ClauseShape::Good {
            own_text_changes_nothing(format, message, seen, &once, slot, at);
        }

        // A format that can't hold several parts may leave the message unchanged, but must not lose
        // some of them.
        let (several, now) = replace(vec!["one".into(), "two".into()]);
        let shown = now.slots[slot]
            .iter()
            .filter_map(|part| part.text.as_deref())
            .collect::<String>();
        let is_shown = shown
            .find("one")
            .zip(shown.find("two"))
            .is_some_and(|(one, two)| one < two);
        check(is_shown || several == *message, CLAUSE, at, || {
            format!("slot {slot} does not show two texts in order")
        });
        let json = json!({"a": [1, null]});
        let (changed, now) = replace(vec![Part::Json(json.clone())]);
        check(
            changed == *message || now.holds_json(slot, &json),
            CLAUSE,
            at,
            || {
                format!(
                    "slot {slot} shows JSON that was put there neither as JSON nor as its text, such as `{{\"a\":1}}`"
                )
            },
        );
        for part in [
            Part::Media {
                mime: "image/png".into(),
                data: Bytes::from_static(&[0, 255]),
            },
            Part::Link {
                mime: None,
                url: "https://example.org/a.png".into(),
            },
            Part::Opaque(json!({"type": "unheard of"})),
        ] {
            replace(vec![part]);
        }
        replace(Vec::new());
    }
}

/// Puts a slot's one text back in its place: over itself, and over the text that has replaced it.
fn own_text_changes_nothing<F: Format<Message: PartialEq>>(
    format: &F,
    message: &F::Message,
    seen: &Seen,
    replaced: &F::Message,
    slot: usize,
    at: usize,
) {
    let Some(&[text]) = seen.texts(slot).as_deref() else {
        return;
    };
    for (from, what) in [
        (message, "was replaced by itself"),
        (replaced, "was put back after another"),
    ] {
        let mut again = from.clone();
        format.replace_result(&mut again, slot, vec![text.into()]);
        check(again == *message, "everything else stays", at, || {
            format!(
                "the one text of slot {slot} {what}, and the message differs; change nothing but the slot's content, and keep its form"
            )
        });
    }
}

fn arguments_are_replaced<F: Format<Message: PartialEq>>(
    format: &F,
    message: &F::Message,
    seen: &Seen,
    at: usize,
    shape: ClauseShape,
) {
    const CLAUSE: &str = "replace_arguments";
    let new = json!({"_cleared": HINT});
    // Signed calls are never replaced.
    for call in (0..seen.calls.len()).filter(|call| !seen.calls[*call].is_signed) {
        let mut changed = message.clone();
        format.replace_arguments(&mut changed, call, new.to_string());
        let now = Seen::of(format, &changed).0;
        if let Err(what) = is_else_the_same(seen, &now, None, Some(call)) {
            fail_clause(
                CLAUSE,
                at,
                format!("after the arguments of call {call} were replaced, {what}"),
            );
        }
        let is_left =
            (shape == ClauseShape::Malformed || seen.calls[call].is_fixed) && changed == *message;
        check(
            is_left || !seen.calls[call].is_fixed && now.calls[call].arguments == new,
            CLAUSE,
            at,
            || format!("call {call} does not show its new arguments"),
        );
    }
}

fn texts_are_replaced<F: Format<Message: PartialEq>>(format: &F, message: &F::Message, at: usize) {
    const CLAUSE: &str = "replace_text";
    let (before, users) = pieces(format, message);
    for text in 0..=users.len() {
        let mut changed = message.clone();
        format.replace_text(&mut changed, text, HINT.into());
        if !format.has_text(message, text) {
            check(changed == *message, CLAUSE, at, || {
                format!("text {text} was replaced without `has_text`")
            });
            continue;
        }
        let Some(place) = users.get(text) else {
            fail_clause(CLAUSE, at, "`has_text` is true of a text that is not shown");
        };
        let mut expected = before.clone();
        expected[*place] = format!("{:?}", Piece::Content(PartRef::Text(HINT)));
        check(pieces(format, &changed).0 == expected, CLAUSE, at, || {
            format!("text {text} does not show the new one, or something else changed")
        });
    }
}

/// The pieces of a message, and which of them are texts of users.
fn pieces<F: Format>(format: &F, message: &F::Message) -> (Vec<String>, Vec<usize>) {
    let (mut all, mut users, mut is_users) = (Vec::new(), Vec::new(), false);
    format.visit(message, &mut |piece| {
        match piece {
            Piece::Role(role) => is_users = role == Role::User,
            Piece::Content(PartRef::Text(_)) if is_users => users.push(all.len()),
            Piece::Content(_) => {}
            _ => is_users = false,
        }
        all.push(format!("{piece:?}"));
    });
    (all, users)
}

fn what_is_not_there_is_left_alone<F: Format<Message: PartialEq>>(
    format: &F,
    message: &F::Message,
    seen: &Seen,
    at: usize,
) {
    const CLAUSE: &str = "a missing slot or call is left alone";
    let mut changed = message.clone();
    for beyond in [0, 1, usize::MAX / 2] {
        format.replace_result(
            &mut changed,
            seen.slots.len().saturating_add(beyond),
            vec![HINT.into()],
        );
        check(changed == *message, CLAUSE, at, || {
            "replacing a missing slot changed the message".into()
        });
        format.replace_arguments(
            &mut changed,
            seen.calls.len().saturating_add(beyond),
            "{}".into(),
        );
        check(changed == *message, CLAUSE, at, || {
            "replacing the arguments of a missing call changed the message".into()
        });
    }
}
