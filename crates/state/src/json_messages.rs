//! JSON messages: `add_messages` over them, and the checks of an update.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::key::{Field, ItemKey};
use crate::keyed::OnMatch;
use crate::list::ItemList as _;
use crate::messages::{AddMessages, IdOf, MessageUpdate, REMOVE_ALL};
use crate::reducer::{Cause, Change, Reducer, Side};
use crate::value::{each, wrong_type};

impl AddMessages<Value> {
    /// LangGraph's dialect for JSON messages with an `id`. A message without one, or with null,
    /// gets an id that begins with `msg-` and is derived from its content.
    #[must_use]
    pub fn langgraph_json() -> Self {
        let mut add = Self::langgraph_json_by("id");
        add.assigns_ids = true;
        add
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
        let mut add = Self::new(by_field(field), OnMatch::Keep);
        add.skips = |message| message["delta"] == true;
        add
    }
}

fn by_field(field: &str) -> IdOf<Value> {
    let field = Field::new(field);
    // In a message, null is not an id.
    Box::new(move |message| Ok(field.find(message)?.filter(|id| *id != ItemKey::Null)))
}

/// Gives each message without an id one that comes from its content, and that neither the list nor
/// the update names, even later in it: another message would take its place.
fn assign_ids(existing: &[Value], update: &mut [Value]) {
    let lacks_id = |message: &Value| message["id"].is_null() && removal(message).is_none();
    if !update.iter().any(lacks_id) {
        return;
    }
    let all = existing.iter().chain(&*update);
    let ids = all.filter_map(|message| message["id"].as_str());
    let mut taken: HashSet<String> = ids.map(str::to_owned).collect();
    // The last number tried for each id, so that many messages of the same content don't each start
    // at 2.
    let mut counted: HashMap<String, usize> = HashMap::new();
    for message in update.iter_mut().filter(|message| lacks_id(message)) {
        let base = digest(message);
        let count = counted.entry(base.clone()).or_default();
        let id = loop {
            *count += 1;
            let id = match *count {
                1 => base.clone(),
                nth => format!("{base}-{nth}"),
            };
            if taken.insert(id.clone()) {
                break id;
            }
        };
        message["id"] = id.into();
    }
}

/// A digest that is equal for equal messages, whatever order this build keeps their keys in.
fn digest(message: &Value) -> String {
    let mut sorted = message.clone();
    sorted.sort_all_objects();
    let digest = Sha256::digest(sorted.to_string().as_bytes());
    let hex: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("msg-{hex}")
}

/// Messages are maps. A single one counts as a list of one, as in LangGraph.
impl Reducer<Value> for AddMessages<Value> {
    type Update = Value;

    fn name(&self) -> &str {
        "add_messages"
    }

    fn plan(&self, existing: &Value, update: Value) -> Result<Change<Value>, Cause> {
        let (existing, mut update) = (existing.items()?, messages(update)?);
        if self.assigns_ids {
            assign_ids(existing, &mut update);
        }
        let update = update.into_iter().enumerate();
        let update = update.map(|(index, message)| read(message, index));
        let edit = self.edit(existing, update.collect::<Result<_, _>>()?)?;
        Ok(edit.into_change())
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
