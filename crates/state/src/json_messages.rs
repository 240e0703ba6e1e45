//! JSON messages: `add_messages` over them, and the checks of an update.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::key::{Field, ItemKey};
use crate::keyed::OnMatch;
use crate::messages::{AddMessages, IdOf, MessageUpdate, REMOVE_ALL};
use crate::reducer::{Cause, Change, Reducer, Side};
use crate::value::{self, each, wrong_type};

impl AddMessages<Value> {
    /// LangGraph's dialect for JSON messages with an `id`. A message without one, or with null,
    /// gets an id that begins with `msg-` and is derived from its content.
    #[must_use]
    pub fn langgraph_json() -> Self {
        Self::new(by_field("id"), OnMatch::Replace).assign_ids(digest, |message, id| {
            if let Value::Object(fields) = message {
                fields.insert("id".into(), Value::String(id));
            }
        })
    }

    /// LangGraph's dialect for JSON messages identified by another field, or by a JSON pointer that
    /// begins with `/`. No id is added: a message without that field, or with null, is new.
    pub fn langgraph_json_by(field: &str) -> Self {
        Self::new(by_field(field), OnMatch::Replace)
    }

    /// Agentflow's dialect for JSON messages with a `message_id`. Messages with `"delta": true` are
    /// not added.
    #[must_use]
    pub fn agentflow_json() -> Self {
        Self::agentflow_json_by("message_id")
    }

    /// [`agentflow_json`](Self::agentflow_json) by another field, or by a JSON pointer that begins
    /// with `/`.
    pub fn agentflow_json_by(field: &str) -> Self {
        Self::new(by_field(field), OnMatch::Keep).skip(|message| {
            message
                .get("delta")
                .and_then(Value::as_bool)
                .unwrap_or_default()
        })
    }
}

fn by_field(field: &str) -> IdOf<Value> {
    let field = Field::new(field);
    // In a message, null is not an id.
    Box::new(move |message| Ok(field.find(message)?.filter(|id| *id != ItemKey::Null)))
}

/// A digest that is equal for equal messages, whatever order this build keeps their keys in.
fn digest(message: &Value) -> String {
    let digest = Sha256::digest(sorted(message).to_string().as_bytes());
    let hex: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("msg-{hex}")
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().collect();
            Value::Object(
                fields
                    .into_iter()
                    .map(|(name, value)| (name.clone(), sorted(value)))
                    .collect(),
            )
        }
        scalar => scalar.clone(),
    }
}

/// Messages are maps. A single one counts as a list of one, as in LangGraph.
impl Reducer<Value> for AddMessages<Value> {
    type Update = Value;

    fn name(&self) -> &str {
        "add_messages"
    }

    fn plan(&self, existing: &Value, update: Value) -> Result<Change<Value>, Cause> {
        let existing = value::list(existing)?;
        let update = messages(update)?
            .into_iter()
            .enumerate()
            .map(|(index, message)| read(message, index));
        let edit = self.edit(existing, update.collect::<Result<_, _>>()?)?;
        Ok(edit.into_json_change())
    }
}

/// Returns the messages of an update: a list of maps, or a single one.
fn messages(update: Value) -> Result<Vec<Value>, Cause> {
    let messages = match update {
        Value::Array(messages) => messages,
        Value::Object(_) => vec![update],
        other => return Err(wrong_type(Side::Update, &other, "a list of messages")),
    };
    each(messages, "messages, which are maps", |message| {
        if message.is_object() {
            Ok(message)
        } else {
            Err(message)
        }
    })
}

/// Returns the id that a removal names; the outer `None` if the message is not a removal.
fn removal(message: &Value) -> Option<Option<&Value>> {
    let role = message.get("role").or_else(|| message.get("type"));
    (role.and_then(Value::as_str) == Some("remove"))
        .then(|| message.get("id").filter(|id| !id.is_null()))
}

fn read(message: Value, index: usize) -> Result<MessageUpdate<Value>, Cause> {
    match removal(&message) {
        None => Ok(MessageUpdate::Put(message)),
        Some(None) => Err(Cause::MissingKey {
            side: Side::Update,
            index,
        }),
        Some(Some(Value::String(id))) if id == REMOVE_ALL => Ok(MessageUpdate::RemoveAll),
        Some(Some(id)) => match ItemKey::of(id) {
            Ok(id) => Ok(MessageUpdate::Remove(id.into_owned())),
            Err(failure) => Err(failure.at(Side::Update, index)),
        },
    }
}

/// Returns the messages of an update to a reducer that takes no removals.
pub(crate) fn without_removals(update: Value) -> Result<Vec<Value>, Cause> {
    let messages = messages(update)?;
    let is_removal = |message: &Value| removal(message).is_some();
    match messages.iter().position(is_removal) {
        None => Ok(messages),
        Some(index) => Err(Cause::RemovalNotTaken { index }),
    }
}
