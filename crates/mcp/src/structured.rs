//! Structured content, shortened in its own shape.

use std::collections::HashSet;

use offcut::hint::Hint;
use offcut::json::{Edit, JsonText, Kind, New, Node, View as _, put_into_text};
use serde_json::Value;

use crate::schema::OutputSchema;

mod drawing;

use drawing::{Carrier, Drawing, DrawingTask, FIELD, Limits, pointed};

/// Limits of strings in bytes and of lists in items, from mild to strict.
const LEVELS: [Limits; 5] = [
    Limits(16_384, 256),
    Limits(4_096, 64),
    Limits(1_024, 24),
    Limits(256, 8),
    Limits(32, 1),
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
    for _ in 0..MAX_CHECKS {
        let task = DrawingTask {
            limits: LEVELS[0],
            most: length / 2,
            kept: &kept,
            only,
        };
        let drawing = fit(document, hint, room, task)?;
        let mut carriers = drawing.carriers();
        let carrier = carriers.find(|one| !refused.contains(&one.path))?;
        let text = with_hint(&drawing, &carrier, hint);
        let violations = schema.violations(&text)?;
        if violations.is_empty() {
            return (text.len() < length).then_some(text);
        }
        // The places of all other violations stay unchanged.
        let before = kept.len();
        kept.extend(violations.into_iter().filter(|path| *path != carrier.path));
        if kept.len() == before {
            refused.insert(carrier.path);
        }
    }
    None
}

/// The mildest drawing within `room`, or the strictest if it is within the task's own maximum.
fn fit<'m>(
    document: Node<'m>,
    hint: &Hint,
    room: usize,
    task: DrawingTask<'_>,
) -> Option<Drawing<'m>> {
    let mut added = hint.clone();
    added.preview.clear();
    let room = room.saturating_sub(Value::from(added.render()).to_string().len());
    let most = room.min(task.most);
    let mild = |limits: &Limits| {
        DrawingTask {
            limits: *limits,
            most,
            ..task
        }
        .draw(document)
    };
    let limits = *LEVELS.last()?;
    let strict = || DrawingTask { limits, ..task }.draw(document);
    LEVELS.iter().find_map(mild).or_else(strict)
}

/// The text of a drawing in which one string carries the hint.
fn with_hint(drawing: &Drawing<'_>, carrier: &Carrier, hint: &Hint) -> String {
    let mut preview = carrier.value.clone();
    for (path, shown, all) in &drawing.lists {
        if !preview.is_empty() {
            preview.push('\n');
        }
        preview += &format!("[… {path} {shown}/{all} …]");
    }
    let mut hint = hint.clone();
    hint.preview = preview;
    let spelled = Value::from(hint.render()).to_string();
    let mut text = drawing.text.clone();
    match &carrier.range {
        Some(range) => text.replace_range(range.clone(), &spelled),
        None => {
            let Ok(mut json) = JsonText::parse(&*text) else {
                return text;
            };
            let hint = New::Text(spelled);
            put_into_text(&mut json, |_| {
                Some(vec![Edit::set(Vec::new(), FIELD, hint)])
            });
            text = json.into_string();
        }
    }
    text
}
