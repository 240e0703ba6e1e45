//! The built-in reducers, by the names that a declaration gives them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use offcut::format::OpenAiChat;
use serde_json::Value;

use super::dialect::Dialect;
use super::node::{DeclaredNode, Shape};
use crate::key::{Field, Scalar};
use crate::keyed::MissingKey;
use crate::keyed_list::KeyedList;
use crate::list::{Append, BoundedAppend, ConcatFlatten};
use crate::messages::AddMessages;
use crate::reducer::Reducer;
use crate::schema::AnyReducer;
use crate::schema_error::{Place, SchemaError, SchemaErrorKind};
use crate::tool_messages::{BoundedMessages, RemoveToolMessages};
use crate::whole::{LastWriteWins, Merge, MergeAll};

/// A reducer that a field requests.
pub(super) struct RequestedReducer {
    pub(super) reducer: AnyReducer,
    pub(super) takes: Takes,
}

/// The fields that a reducer accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Anything,
    List,
    Map,
}

impl RequestedReducer {
    fn list(reducer: impl Reducer<Value, Update = Value> + 'static) -> Self {
        Self {
            reducer: Arc::new(reducer),
            takes: Takes::List,
        }
    }

    fn map(reducer: impl Reducer<Value, Update = Value> + 'static) -> Self {
        Self {
            reducer: Arc::new(reducer),
            takes: Takes::Map,
        }
    }

    fn any(reducer: impl Reducer<Value, Update = Value> + 'static) -> Self {
        Self {
            reducer: Arc::new(reducer),
            takes: Takes::Anything,
        }
    }

    pub(super) fn langgraph_messages() -> Self {
        Self::list(AddMessages::langgraph_json())
    }
}

/// All words. Error messages list them, and no registered reducer may have one of them as its name.
const WORDS: [&str; 15] = [
    "last_write_wins",
    "replace_value",
    "replace_messages",
    "replace",
    "append",
    "append_items",
    "dedupe_append",
    "concat_flatten",
    "bounded_append",
    "bounded_messages",
    "merge",
    "merge_all",
    "merge_by_key",
    "add_messages",
    "remove_tool_messages",
];

const WITH_PARAMETERS: [&str; 6] = [
    "bounded_append",
    "bounded_messages",
    "dedupe_append",
    "append_items",
    "merge_by_key",
    "add_messages",
];

pub(super) fn is_known(name: &str) -> bool {
    WORDS.contains(&name)
}

/// Returns true if a dialect has the word. Reducers with parameters belong to no dialect, so every
/// dialect takes them.
fn dialect_has(dialect: Dialect, word: &str) -> bool {
    match dialect {
        Dialect::Sherma => matches!(word, "append" | "replace"),
        Dialect::OpenArmature => is_known(word) && word != "replace",
        Dialect::Agentflow => is_known(word) && !matches!(word, "append" | "replace"),
    }
}

/// Reads the reducer that `node` requests: a word, a registered name, or a map from one word to its
/// parameters.
pub(super) fn read(
    node: DeclaredNode,
    dialect: Dialect,
    registered: &BTreeMap<String, AnyReducer>,
) -> Result<RequestedReducer, SchemaError> {
    let wrong = node.wrong("write a reducer's name, or a map from it to its parameters");
    let DeclaredNode { place, shape } = node;
    let (word, parameters) = match shape {
        Shape::Scalar(Value::String(word)) => (word, None),
        Shape::List(items) if items.len() > 1 => return Err(conflict(place, items.len())),
        Shape::Map(entries) if entries.len() > 1 => return Err(conflict(place, entries.len())),
        Shape::Map(mut entries) => match entries.pop() {
            Some((word, parameters)) => (word, Some(parameters)),
            None => return Err(wrong),
        },
        Shape::Scalar(_) | Shape::List(_) => return Err(wrong),
    };
    if let Some(reducer) = registered.get(&word) {
        if parameters.is_some() {
            let message = format!(
                "`{word}` is a registered reducer and takes no parameters: write only its name"
            );
            return Err(SchemaError::configuration(place, message));
        }
        return Ok(RequestedReducer {
            reducer: reducer.clone(),
            takes: Takes::Anything,
        });
    }
    let takes_parameters = WITH_PARAMETERS.contains(&word.as_str());
    let is_there = dialect_has(dialect, &word) || parameters.is_some() && takes_parameters;
    if !is_there {
        let mut known: Vec<_> = WORDS
            .into_iter()
            .filter(|word| dialect_has(dialect, word))
            .collect();
        known.extend(registered.keys().map(String::as_str));
        let message = format!(
            "there is no reducer `{word}` in this dialect: use one of {}",
            known.join(", ")
        );
        let kind = SchemaErrorKind::UnknownReducer;
        return Err(SchemaError::new(kind, place, message));
    }
    if parameters.is_some() && !takes_parameters {
        let message = format!("`{word}` takes no parameters: write only its name");
        return Err(SchemaError::configuration(place, message));
    }
    let at = place.at(&word);
    let parameters = match parameters {
        Some(node) => node.at(at),
        None => DeclaredNode::null(at),
    };
    build(&word, parameters, dialect)
}

fn conflict(place: Place, count: usize) -> SchemaError {
    let message = format!("this field has {count} reducers: keep one");
    SchemaError::new(SchemaErrorKind::ConflictingReducers, place, message)
}

fn build(
    word: &str,
    parameters: DeclaredNode,
    dialect: Dialect,
) -> Result<RequestedReducer, SchemaError> {
    Ok(match word {
        "merge" => RequestedReducer::map(Merge),
        "merge_all" => RequestedReducer::map(MergeAll),
        "concat_flatten" => RequestedReducer::list(ConcatFlatten),
        "remove_tool_messages" => RequestedReducer::list(RemoveToolMessages::new(OpenAiChat)),
        "append" if dialect == Dialect::Sherma => RequestedReducer::langgraph_messages(),
        "append" => RequestedReducer::list(Append),
        "bounded_append" => RequestedReducer::list(BoundedAppend::new(max_len(word, parameters)?)),
        "bounded_messages" => {
            RequestedReducer::list(BoundedMessages::new(OpenAiChat, max_len(word, parameters)?))
        }
        "dedupe_append" => match key(parameters)? {
            (Some(key), missing_key) => RequestedReducer::list(
                KeyedList::dedupe_append(Field::new(key)).missing_key(missing_key),
            ),
            (None, _) => RequestedReducer::list(KeyedList::dedupe_append(Scalar)),
        },
        // Agentflow: "avoiding duplicates by item.id".
        "append_items" => {
            let (key, missing_key) = key(parameters)?;
            RequestedReducer::list(
                KeyedList::dedupe_append(Field::new(key.unwrap_or_else(|| "id".into())))
                    .missing_key(missing_key),
            )
        }
        "merge_by_key" => {
            let place = parameters.place.clone();
            let (Some(key), missing_key) = key(parameters)? else {
                let message = "`merge_by_key` needs a key: write `merge_by_key: {key: id}` with the field that \
                               identifies items";
                return Err(SchemaError::configuration(place, message));
            };
            RequestedReducer::list(
                KeyedList::merge_by_key(Field::new(key)).missing_key(missing_key),
            )
        }
        "add_messages" => {
            let [key] = given(parameters, ["key"])?;
            let key = key.map(name).transpose()?;
            RequestedReducer::list(match (dialect, key) {
                (Dialect::Agentflow, Some(key)) => AddMessages::agentflow_json_by(&key),
                (Dialect::Agentflow, None) => AddMessages::agentflow_json(),
                (_, Some(key)) => AddMessages::langgraph_json_by(&key),
                (_, None) => AddMessages::langgraph_json(),
            })
        }
        "last_write_wins" | "replace_value" | "replace_messages" | "replace" => {
            RequestedReducer::any(LastWriteWins)
        }
        // Only a word of `WORDS` that was forgotten here. It must not become another reducer.
        _ => {
            let message = format!("`{word}` is not built in after all: report this as a bug");
            let kind = SchemaErrorKind::UnknownReducer;
            return Err(SchemaError::new(kind, parameters.place, message));
        }
    })
}

/// Returns the given parameters: all, some, or none.
fn given<const N: usize>(
    parameters: DeclaredNode,
    keys: [&str; N],
) -> Result<[Option<DeclaredNode>; N], SchemaError> {
    if parameters.is_null() {
        Ok([const { None }; N])
    } else {
        parameters.entries(keys)
    }
}

fn max_len(word: &str, parameters: DeclaredNode) -> Result<NonZeroUsize, SchemaError> {
    let place = parameters.place.clone();
    let [max] = given(parameters, ["max_len"])?;
    let Some(max) = max else {
        let message = format!("`{word}` needs a bound: write `{word}: {{max_len: 50}}`");
        return Err(SchemaError::configuration(place, message));
    };
    let (place, described, value) = (max.place.clone(), max.described(), max.into_value());
    value
        .as_u64()
        .and_then(|max| usize::try_from(max).ok())
        .and_then(NonZeroUsize::new)
        .ok_or_else(|| {
            let found = if value.is_i64() || value.is_u64() {
                value.to_string()
            } else {
                described.to_owned()
            };
            let message = format!("`max_len` is {found}: write an integer of at least 1");
            SchemaError::configuration(place, message)
        })
}

/// Reads the key field of items, and the rule for items without a key.
fn key(parameters: DeclaredNode) -> Result<(Option<String>, MissingKey), SchemaError> {
    let [key, missing_key] = given(parameters, ["key", "no_key"])?;
    let key = key.filter(|key| !key.is_null()).map(name).transpose()?;
    let missing_key = match missing_key {
        Some(node) => node.one_of(&[("fail", MissingKey::Fail), ("new", MissingKey::New)])?,
        None => MissingKey::Fail,
    };
    Ok((key, missing_key))
}

fn name(key: DeclaredNode) -> Result<String, SchemaError> {
    let described = key.described();
    match key.shape {
        Shape::Scalar(Value::String(key)) if !key.is_empty() => Ok(key),
        _ => {
            let message = format!("the key is {described}: name the field that identifies items");
            Err(SchemaError::configuration(key.place, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_reducer() {
        let place = || Place::path("field");
        for word in WORDS {
            // Some words need parameters, and say so.
            let built = build(word, DeclaredNode::null(place()), Dialect::Agentflow);
            let kind = built.err().map(|error| error.kind());
            assert_ne!(kind, Some(SchemaErrorKind::UnknownReducer), "{word}");
        }
    }
}
