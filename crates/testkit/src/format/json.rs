//! Clauses about a message's JSON.

use offcut::format::Format;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::clauses::{ClauseShape, HINT, all_clauses, check, fail_clause};
use super::seen::Seen;

/// A field unknown to every format.
const UNKNOWN: &str = "zz_offcut_unknown";

fn write<M: Serialize>(message: &M, at: usize) -> Value {
    serde_json::to_value(message)
        .unwrap_or_else(|_| fail_clause("round trip", at, "it can't be written as JSON"))
}

fn read<M: DeserializeOwned>(json: Value) -> Option<M> {
    serde_json::from_value(json).ok()
}

pub(super) fn round_trips<F>(format: &F, message: &F::Message, at: usize)
where
    F: Format<Message: PartialEq + Serialize + DeserializeOwned>,
{
    let same = |message: &F::Message| {
        read(write(message, at)).is_some_and(|again: F::Message| again == *message)
    };
    check(same(message), "round trip", at, || {
        "it differs after a round trip through JSON".into()
    });
    for (what, changed) in replacements(format, message) {
        check(same(&changed), "round trip", at, || {
            format!("{what}, it differs after a round trip through JSON")
        });
    }
}

/// The message with each result and each call's arguments replaced in turn.
fn replacements<F: Format>(format: &F, message: &F::Message) -> Vec<(String, F::Message)> {
    let seen = Seen::of(format, message).0;
    let mut all = Vec::new();
    for slot in 0..seen.slots.len() {
        let mut changed = message.clone();
        format.replace_result(&mut changed, slot, vec![HINT.into()]);
        all.push((format!("after slot {slot} was replaced"), changed));
    }
    for call in (0..seen.calls.len()).filter(|call| !seen.calls[*call].is_signed) {
        let mut changed = message.clone();
        format.replace_arguments(&mut changed, call, json!({"_cleared": HINT}).to_string());
        all.push((
            format!("after the arguments of call {call} were replaced"),
            changed,
        ));
    }
    all
}

/// Adds a field to each object of the message in turn. If the message type keeps it and the format
/// ignores it, it must survive every replacement that leaves the object's other fields in place.
pub(super) fn unknown_fields_stay<F>(format: &F, message: &F::Message, at: usize)
where
    F: Format<Message: PartialEq + Serialize + DeserializeOwned>,
{
    let plain = write(message, at);
    let seen = Seen::of(format, message).0;
    let changes: Vec<Value> = replacements(format, message)
        .iter()
        .map(|(_, changed)| write(changed, at))
        .collect();
    for path in paths(&plain)
        .into_iter()
        .filter(|path| plain.pointer(path).is_some_and(Value::is_object))
    {
        let mut marked = plain.clone();
        if let Some(Value::Object(fields)) = marked.pointer_mut(&path) {
            fields.insert(UNKNOWN.into(), json!({"b": 1, "a": [null]}));
        }
        let is_kept = |json: &Value| {
            json.pointer(&path)
                .is_some_and(|object| object.get(UNKNOWN).is_some())
        };
        let Some(marked) = read::<F::Message>(marked) else {
            continue;
        };
        if !is_kept(&write(&marked, at)) || Seen::of(format, &marked).0 != seen {
            continue;
        }
        for ((what, changed), plain_change) in
            replacements(format, &marked).into_iter().zip(&changes)
        {
            let must_stay = is_in_place(&plain, plain_change, &path);
            check(
                !must_stay || is_kept(&write(&changed, at)),
                "unknown fields stay",
                at,
                || format!("{what}, an unknown field at `{path}` is gone"),
            );
        }
    }
}

/// Returns whether a change leaves the object at `path` and its ancestors in place: objects with
/// the same fields, lists of the same length.
fn is_in_place(before: &Value, after: &Value, path: &str) -> bool {
    let ends = path
        .match_indices('/')
        .map(|(end, _)| end)
        .chain([path.len()]);
    ends.map(|end| &path[..end])
        .all(|path| match (before.pointer(path), after.pointer(path)) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                before.keys().eq(after.keys())
            }
            (Some(Value::Array(before)), Some(Value::Array(after))) => before.len() == after.len(),
            _ => false,
        })
}

/// The pointer of every value in `json`, starting with its own.
fn paths(json: &Value) -> Vec<String> {
    fn walk(json: &Value, path: &str, all: &mut Vec<String>) {
        all.push(path.to_owned());
        match json {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                walk(
                    value,
                    &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")),
                    all,
                );
            }),
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(at, value)| walk(value, &format!("{path}/{at}"), all));
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    walk(json, "", &mut all);
    all
}

/// Replaces each value of the message with one that does not belong there. If the outcome can still
/// be read as a message, the format must treat it as one and change only what is replaced.
pub(super) fn malformed_messages_do_no_harm<F>(format: &F, message: &F::Message, at: usize)
where
    F: Format<Message: PartialEq + Serialize + DeserializeOwned>,
{
    let plain = write(message, at);
    for path in paths(&plain) {
        for odd in [
            json!(null),
            json!(true),
            json!(-1.5),
            json!(""),
            json!("x"),
            json!([]),
            json!([[{}], 7]),
            json!({}),
        ] {
            let mut odd_one = plain.clone();
            if let Some(value) = odd_one.pointer_mut(&path) {
                *value = odd;
            }
            let Some(odd_one) = read::<F::Message>(odd_one) else {
                continue;
            };
            all_clauses(format, &odd_one, at, ClauseShape::Malformed);
        }
    }
}
