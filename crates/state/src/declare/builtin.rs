//! The built-in reducers, by the names that a declaration gives them.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use offcut::format::OpenAiChat;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::dialect::Dialect;
use crate::key::{Field, Scalar};
use crate::keyed::MissingKey;
use crate::keyed_list::KeyedList;
use crate::list::{Append, BoundedAppend, ConcatFlatten};
use crate::messages::AddMessages;
use crate::reducer::Reducer;
use crate::schema::{AnyReducer, FieldType};
use crate::schema_error::{Place, SchemaError, SchemaErrorKind};
use crate::tool_messages::{BoundedMessages, RemoveToolMessages};
use crate::whole::{LastWriteWins, Merge, MergeAll};

/// A reducer that a field requests.
pub(super) struct RequestedReducer {
    pub(super) reducer: AnyReducer,
    /// The type of the fields that it accepts.
    pub(super) takes: FieldType,
}

impl RequestedReducer {
    fn new(takes: FieldType, reducer: impl Reducer<Value, Update = Value> + 'static) -> Self {
        Self {
            reducer: Arc::new(reducer),
            takes,
        }
    }

    fn list(reducer: impl Reducer<Value, Update = Value> + 'static) -> Self {
        Self::new(FieldType::List, reducer)
    }

    pub(super) fn langgraph_messages() -> Self {
        Self::list(AddMessages::langgraph_json())
    }
}

/// All words, each with whether it takes parameters. Error messages list them, and no registered reducer may have one of
/// them as its name.
const WORDS: [(&str, bool); 15] = [
    ("last_write_wins", false),
    ("replace_value", false),
    ("replace_messages", false),
    ("replace", false),
    ("append", false),
    ("append_items", true),
    ("dedupe_append", true),
    ("concat_flatten", false),
    ("bounded_append", true),
    ("bounded_messages", true),
    ("merge", false),
    ("merge_all", false),
    ("merge_by_key", true),
    ("add_messages", true),
    ("remove_tool_messages", false),
];

pub(super) fn is_known(name: &str) -> bool {
    WORDS.iter().any(|(word, _)| *word == name)
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

/// Reads the reducer that a field requests: a word, a registered name, or a map from one word to
/// its parameters.
pub(super) fn read(
    written: Value,
    place: &Place,
    dialect: Dialect,
    registered: &BTreeMap<String, AnyReducer>,
) -> Result<RequestedReducer, SchemaError> {
    let written = match written {
        Value::String(word) => Some((word, None)),
        Value::Array(items) if items.len() > 1 => return Err(conflict(place, items.len())),
        Value::Object(entries) if entries.len() > 1 => return Err(conflict(place, entries.len())),
        Value::Object(entries) => {
            let entry = entries.into_iter().next();
            entry.map(|(word, parameters)| (word, Some(parameters)))
        }
        _ => None,
    };
    let Some((word, parameters)) = written else {
        let message = "write a reducer's name, or a map from it to its parameters";
        return Err(SchemaError::declaration(place.clone(), message));
    };
    if let Some(reducer) = registered.get(&word) {
        if parameters.is_some() {
            let message = format!(
                "`{word}` is a registered reducer and takes no parameters: write only its name"
            );
            return Err(SchemaError::configuration(place.clone(), message));
        }
        return Ok(RequestedReducer {
            reducer: reducer.clone(),
            takes: FieldType::Any,
        });
    }
    let takes_parameters = WORDS.contains(&(word.as_str(), true));
    let is_there = dialect_has(dialect, &word) || parameters.is_some() && takes_parameters;
    if !is_there {
        let mut known: Vec<_> = WORDS
            .into_iter()
            .map(|(word, _)| word)
            .filter(|word| dialect_has(dialect, word))
            .collect();
        known.extend(registered.keys().map(String::as_str));
        let message = format!(
            "there is no reducer `{word}` in this dialect: use one of {}",
            known.join(", ")
        );
        let kind = SchemaErrorKind::UnknownReducer;
        return Err(SchemaError::new(kind, place.clone(), message));
    }
    if parameters.is_some() && !takes_parameters {
        let message = format!("`{word}` takes no parameters: write only its name");
        return Err(SchemaError::configuration(place.clone(), message));
    }
    build(&word, parameters.unwrap_or_default(), place, dialect)
}

fn conflict(place: &Place, count: usize) -> SchemaError {
    let message = format!("this field has {count} reducers: keep one");
    SchemaError::new(SchemaErrorKind::ConflictingReducers, place.clone(), message)
}

/// The parameters of reducers that bound a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map")]
struct Bound {
    max_len: NonZeroUsize,
}

/// The parameters of reducers that find items by a key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map")]
struct Keyed {
    key: Option<String>,
    no_key: Option<NoKey>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum NoKey {
    Fail,
    New,
}

/// The parameters of reducers of messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map")]
struct Id {
    key: Option<String>,
}

fn build(
    word: &str,
    parameters: Value,
    place: &Place,
    dialect: Dialect,
) -> Result<RequestedReducer, SchemaError> {
    Ok(match word {
        "merge" => RequestedReducer::new(FieldType::Map, Merge),
        "merge_all" => RequestedReducer::new(FieldType::Map, MergeAll),
        "concat_flatten" => RequestedReducer::list(ConcatFlatten),
        "remove_tool_messages" => RequestedReducer::list(RemoveToolMessages::new(OpenAiChat)),
        "append" if dialect == Dialect::Sherma => RequestedReducer::langgraph_messages(),
        "append" => RequestedReducer::list(Append),
        "bounded_append" => {
            let Bound { max_len } = given(word, parameters, place)?;
            RequestedReducer::list(BoundedAppend::new(max_len))
        }
        "bounded_messages" => {
            let Bound { max_len } = given(word, parameters, place)?;
            RequestedReducer::list(BoundedMessages::new(OpenAiChat, max_len))
        }
        "dedupe_append" => match key(word, parameters, place)? {
            (Some(key), missing_key) => {
                RequestedReducer::list(KeyedList::dedupe_append(key).missing_key(missing_key))
            }
            (None, _) => RequestedReducer::list(KeyedList::dedupe_append(Scalar)),
        },
        // Agentflow: "avoiding duplicates by item.id".
        "append_items" => {
            let (key, missing_key) = key(word, parameters, place)?;
            let key = key.unwrap_or_else(|| Field::new("id"));
            RequestedReducer::list(KeyedList::dedupe_append(key).missing_key(missing_key))
        }
        "merge_by_key" => {
            let (Some(key), missing_key) = key(word, parameters, place)? else {
                let message = "`merge_by_key` needs a key: write `merge_by_key: {key: id}` with the field that \
                               identifies items";
                return Err(SchemaError::configuration(place.at(word), message));
            };
            RequestedReducer::list(KeyedList::merge_by_key(key).missing_key(missing_key))
        }
        "add_messages" => {
            let Id { key } = given(word, parameters, place)?;
            check_key(key.as_deref(), word, place)?;
            RequestedReducer::list(match (dialect, key) {
                (Dialect::Agentflow, Some(key)) => AddMessages::agentflow_json_by(&key),
                (Dialect::Agentflow, None) => AddMessages::agentflow_json(),
                (_, Some(key)) => AddMessages::langgraph_json_by(&key),
                (_, None) => AddMessages::langgraph_json(),
            })
        }
        "last_write_wins" | "replace_value" | "replace_messages" | "replace" => {
            RequestedReducer::new(FieldType::Any, LastWriteWins)
        }
        // Only a word of `WORDS` that was forgotten here. It must not become another reducer.
        _ => {
            let message = format!("`{word}` is not built in after all: report this as a bug");
            let kind = SchemaErrorKind::UnknownReducer;
            return Err(SchemaError::new(kind, place.clone(), message));
        }
    })
}

/// Reads the parameters of a reducer; null counts as none.
fn given<P: DeserializeOwned>(
    word: &str,
    parameters: Value,
    place: &Place,
) -> Result<P, SchemaError> {
    let example = match word {
        "bounded_append" | "bounded_messages" => "{max_len: 50}",
        _ => "{key: id}",
    };
    let wrong = |place, problem: &dyn fmt::Display| {
        SchemaError::configuration(place, format!("{problem}: write `{word}: {example}`"))
    };
    let parameters = match parameters {
        Value::Null => Value::Object(Map::new()),
        Value::Array(_) => return Err(wrong(place.at(word), &"this is a list")),
        given => given,
    };
    serde_path_to_error::deserialize(parameters)
        .map_err(|error| wrong(place.at(word).inside(error.path()), error.inner()))
}

/// Reads the key of items, and the rule for items without it.
fn key(
    word: &str,
    parameters: Value,
    place: &Place,
) -> Result<(Option<Field>, MissingKey), SchemaError> {
    let Keyed { key, no_key } = given(word, parameters, place)?;
    check_key(key.as_deref(), word, place)?;
    let missing_key = match no_key {
        Some(NoKey::New) => MissingKey::New,
        Some(NoKey::Fail) | None => MissingKey::Fail,
    };
    Ok((key.map(Field::new), missing_key))
}

fn check_key(key: Option<&str>, word: &str, place: &Place) -> Result<(), SchemaError> {
    if key == Some("") {
        let message = "the key is empty: name the field that identifies items";
        return Err(SchemaError::configuration(
            place.at(word).at("key"),
            message,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_reducer() {
        let place = Place::path("field");
        for (word, _) in WORDS {
            // Some words need parameters, and say so.
            let built = build(word, Value::Null, &place, Dialect::Agentflow);
            let kind = built.err().map(|error| error.kind());
            assert_ne!(kind, Some(SchemaErrorKind::UnknownReducer), "{word}");
        }
    }
}
