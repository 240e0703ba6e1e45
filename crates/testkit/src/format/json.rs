//! Clauses about a message's JSON.

use offcut::format::Format;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::clauses::{ClauseShape, HINT, Subject};
use super::seen::Seen;

/// A field unknown to every format.
const UNKNOWN: &str = "zz_offcut_unknown";

fn read<M: DeserializeOwned>(json: Value) -> Option<M> {
    serde_json::from_value(json).ok()
}

impl<F> Subject<'_, F>
where
    F: Format<Message: PartialEq + Serialize + DeserializeOwned>,
{
    fn write(&self, message: &F::Message) -> Value {
        serde_json::to_value(message)
            .unwrap_or_else(|_| self.fail("round trip", "it can't be written as JSON"))
    }

    pub(super) fn round_trips(&self) {
        let same = |message: &F::Message| {
            read(self.write(message)).is_some_and(|again: F::Message| again == *message)
        };
        self.check(
            same(self.message),
            "round trip",
            "it differs after a round trip through JSON",
        );
        for (what, changed) in self.replacements() {
            self.check(
                same(&changed),
                "round trip",
                format_args!("{what}, it differs after a round trip through JSON"),
            );
        }
    }

    /// The message with each result and each call's arguments replaced in turn.
    fn replacements(&self) -> Vec<(String, F::Message)> {
        let seen = self.seen();
        let mut all = Vec::new();
        for slot in 0..seen.slots {
            let changed = self.with_result(slot, vec![HINT.into()]);
            all.push((format!("after slot {slot} was replaced"), changed));
        }
        for call in seen.open_calls() {
            let changed = self.with_arguments(call, json!({"_cleared": HINT}).to_string());
            let what = format!("after the arguments of call {call} were replaced");
            all.push((what, changed));
        }
        all
    }

    /// Adds a field to each object of the message in turn. If the message type keeps it and the format
    /// ignores it, it must survive every replacement that leaves the object's other fields in place.
    pub(super) fn unknown_fields_stay(&self) {
        let plain = self.write(self.message);
        let seen = self.seen();
        let changes: Vec<Value> = self
            .replacements()
            .iter()
            .map(|(_, changed)| self.write(changed))
            .collect();
        for path in paths(&plain) {
            let mut marked = plain.clone();
            let Some(Value::Object(fields)) = marked.pointer_mut(&path) else {
                continue;
            };
            fields.insert(UNKNOWN.into(), json!({"b": 1, "a": [null]}));
            let is_kept = |message: &F::Message| {
                let written = self.write(message);
                let object = written.pointer(&path);
                object.is_some_and(|object| object.get(UNKNOWN).is_some())
            };
            let Some(marked) = read::<F::Message>(marked) else {
                continue;
            };
            if !is_kept(&marked) || Seen::of(self.format, &marked) != seen {
                continue;
            }
            let marked = Subject {
                message: &marked,
                ..*self
            };
            for ((what, changed), plain_change) in marked.replacements().into_iter().zip(&changes) {
                let must_stay = is_in_place(&plain, plain_change, &path);
                self.check(
                    !must_stay || is_kept(&changed),
                    "unknown fields stay",
                    format_args!("{what}, an unknown field at `{path}` is gone"),
                );
            }
        }
    }

    /// Replaces each value of the message with one that does not belong there. If the outcome can
    /// still be read as a message, the format must treat it as one and change only what is replaced.
    pub(super) fn malformed_messages_do_no_harm(&self) {
        let plain = self.write(self.message);
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
                if let Some(message) = &read::<F::Message>(odd_one) {
                    Subject { message, ..*self }.all_clauses(ClauseShape::Malformed);
                }
            }
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
    let (mut all, mut todo) = (Vec::new(), vec![(String::new(), json)]);
    while let Some((path, json)) = todo.pop() {
        match json {
            Value::Object(fields) => todo.extend(fields.iter().map(|(name, value)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                (format!("{path}/{name}"), value)
            })),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                todo.extend(items.map(|(at, value)| (format!("{path}/{at}"), value)));
            }
            _ => {}
        }
        all.push(path);
    }
    all
}
