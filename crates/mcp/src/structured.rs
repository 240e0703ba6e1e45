//! Structured content, shortened in its own shape.

use std::collections::HashSet;

use offcut::hint::Hint;
use offcut::json::{Kind, Node, View as _};
use serde_json::Value;

use crate::schema::OutputSchema;

mod drawing;

use drawing::{Carrier, Drawing, FIELD, Limits, draw, pointed};

/// Limits of strings in bytes and of lists in items, from mild to strict.
const LEVELS: [Limits; 5] = [
    Limits::new(16_384, 256),
    Limits::new(4_096, 64),
    Limits::new(1_024, 24),
    Limits::new(256, 8),
    Limits::new(32, 1),
];
/// Maximum number of bytes of a document besides the only string that is worth storing.
const MAX_OTHERS: usize = 1024;
/// Maximum number of drawings that are checked against the schema.
const MAX_CHECKS: usize = 24;

/// The string that makes up nearly all of a document, and the JSON pointer to it.
pub(crate) fn only_string(document: Node<'_>) -> Option<(String, &str)> {
    let (mut node, mut path) = (document, String::new());
    let length = document.range().len();
    let least = length - (length / 8).min(MAX_OTHERS);
    loop {
        let inner = match node.kind() {
            Kind::String => return Some((path, node.as_str()?)),
            Kind::Object => node
                .fields()
                .map(|(name, value)| (pointed(name), value))
                .find(|(_, value)| value.range().len() >= least),
            Kind::Array => node
                .items()
                .enumerate()
                .map(|(nth, item)| (nth.to_string(), item))
                .find(|(_, item)| item.range().len() >= least),
            _ => None,
        };
        let (step, inner) = inner?;
        path = format!("{path}/{step}");
        node = inner;
    }
}

/// Shortens `document`, without duplicate keys, so that it takes about `room` bytes: long
/// strings are cut in the middle, long lists after their first items. Keys, numbers and short
/// strings stay, with their spelling. One string carries `hint`, which leads to the original: of all of it, or
/// of the `only` string that is cut then.
///
/// `None` if that can't be done, or if the outcome would violate `schema` or be longer than half of
/// the original.
pub(crate) fn shorten(
    document: Node<'_>,
    hint: &Hint,
    room: usize,
    schema: &OutputSchema,
    only: Option<&str>,
) -> Option<String> {
    let length = document.range().len();
    let (mut kept, mut refused) = (HashSet::new(), HashSet::new());
    let mut drawing = fit(document, hint, room, (length / 2, only), &kept)?;
    for _ in 0..MAX_CHECKS {
        let carrier = drawing
            .carriers()
            .find(|one| !refused.contains(&one.path))?;
        let text = with_hint(&drawing, &carrier, hint);
        let violations = schema.violations(&text)?;
        if violations.is_empty() {
            return (text.len() < length).then_some(text);
        }
        // The places of all other violations stay unchanged.
        let before = kept.len();
        kept.extend(violations.into_iter().filter(|path| *path != carrier.path));
        if kept.len() > before {
            drawing = fit(document, hint, room, (length / 2, only), &kept)?;
        } else {
            refused.insert(carrier.path);
        }
    }
    None
}

/// The mildest drawing within `room`, or the strictest if it is within `most`.
fn fit<'m>(
    document: Node<'m>,
    hint: &Hint,
    room: usize,
    (most, only): (usize, Option<&str>),
    kept: &HashSet<String>,
) -> Option<Drawing<'m>> {
    let mut added = hint.clone();
    added.preview.clear();
    let room = room.saturating_sub(Value::from(added.render()).to_string().len());
    let mild = LEVELS
        .iter()
        .find_map(|limits| draw(document, *limits, room.min(most), kept, only));
    mild.or_else(|| draw(document, *LEVELS.last()?, most, kept, only))
}

/// The text of a drawing in which one string carries the hint.
fn with_hint(drawing: &Drawing<'_>, carrier: &Carrier, hint: &Hint) -> String {
    let mut preview = carrier.value.clone();
    for (path, shown, all) in drawing.cut_lists() {
        if !preview.is_empty() {
            preview.push('\n');
        }
        preview += &format!("[… {path} {shown}/{all} …]");
    }
    let mut hint = hint.clone();
    hint.preview = preview;
    let spelled = Value::from(hint.render()).to_string();
    let mut text = drawing.text().to_owned();
    match &carrier.range {
        Some(range) => text.replace_range(range.clone(), &spelled),
        None => {
            let comma = if text.trim_end().ends_with("{}") {
                ""
            } else {
                ","
            };
            text.truncate(text.trim_end().len().saturating_sub(1));
            text += &format!("{comma}\"{FIELD}\":{spelled}}}");
        }
    }
    text
}
