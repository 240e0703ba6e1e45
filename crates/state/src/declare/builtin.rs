//! The built-in reducers, by the names that a declaration gives them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use offcut::format::OpenAiChat;
use serde::Deserialize;
use serde_json::{Value, json};

use super::dialect::Dialect;
use crate::key::Field;
use crate::keyed::MissingKey;
use crate::keyed_list::KeyedList;
use crate::list::{Append, BoundedAppend, ConcatFlatten};
use crate::messages::AddMessages;
use crate::reducer::Reducer;
use crate::schema::{AnyReducer, FieldType};
use crate::schema_error::{CONFIGURATION, CONFLICT, DECLARATION, SchemaError};
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

/// A built-in reducer with its parameters.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Builtin {
    #[serde(alias = "replace_value", alias = "replace_messages", alias = "replace")]
    LastWriteWins {},
    Append {},
    ConcatFlatten {},
    Merge {},
    MergeAll {},
    RemoveToolMessages {},
    BoundedAppend {
        max_len: NonZeroUsize,
    },
    BoundedMessages {
        max_len: NonZeroUsize,
    },
    DedupeAppend {
        key: Option<String>,
        #[serde(default)]
        no_key: MissingKey,
    },
    AppendItems {
        key: Option<String>,
        #[serde(default)]
        no_key: MissingKey,
    },
    MergeByKey {
        key: String,
        #[serde(default)]
        no_key: MissingKey,
    },
    AddMessages {
        key: Option<String>,
    },
}

/// Reads the reducer that a field requests: a word, a registered name, or a map from one word to
/// its parameters.
pub(super) fn read(
    written: Value,
    place: &str,
    dialect: Dialect,
    registered: &BTreeMap<String, AnyReducer>,
) -> Result<RequestedReducer, SchemaError> {
    let written = match written {
        Value::String(word) => match registered.get(&word) {
            Some(reducer) => {
                return Ok(RequestedReducer {
                    reducer: reducer.clone(),
                    takes: FieldType::Any,
                });
            }
            None => json!({ word: {} }),
        },
        Value::Object(mut entries) if entries.len() < 2 => {
            for parameters in entries.values_mut().filter(|given| given.is_null()) {
                *parameters = json!({});
            }
            Value::Object(entries)
        }
        Value::Object(_) | Value::Array(_) => {
            let message = "write one reducer: its name, or a map from it to its parameters";
            return Err(SchemaError::new(CONFLICT, place, message));
        }
        other => other,
    };
    let builtin = serde_path_to_error::deserialize(written).map_err(|error| {
        let (path, problem) = (error.path(), error.inner().to_string());
        match path.iter().next() {
            None => SchemaError::new(DECLARATION, place, problem),
            Some(_) => SchemaError::new(CONFIGURATION, format!("{place}.{path}"), problem),
        }
    })?;
    Ok(match builtin {
        Builtin::LastWriteWins {} => RequestedReducer::new(FieldType::Any, LastWriteWins),
        Builtin::Append {} if dialect == Dialect::Sherma => RequestedReducer::langgraph_messages(),
        Builtin::Append {} => RequestedReducer::list(Append),
        Builtin::ConcatFlatten {} => RequestedReducer::list(ConcatFlatten),
        Builtin::Merge {} => RequestedReducer::new(FieldType::Map, Merge),
        Builtin::MergeAll {} => RequestedReducer::new(FieldType::Map, MergeAll),
        Builtin::RemoveToolMessages {} => {
            RequestedReducer::list(RemoveToolMessages::new(OpenAiChat))
        }
        Builtin::BoundedAppend { max_len } => RequestedReducer::list(BoundedAppend::new(max_len)),
        Builtin::BoundedMessages { max_len } => {
            RequestedReducer::list(BoundedMessages::new(OpenAiChat, max_len))
        }
        Builtin::DedupeAppend { key, no_key } => {
            let key = Field::new(key.unwrap_or_default());
            RequestedReducer::list(KeyedList::dedupe_append(key).missing_key(no_key))
        }
        // Agentflow: "avoiding duplicates by item.id".
        Builtin::AppendItems { key, no_key } => {
            let key = Field::new(key.as_deref().unwrap_or("id"));
            RequestedReducer::list(KeyedList::dedupe_append(key).missing_key(no_key))
        }
        Builtin::MergeByKey { key, no_key } => {
            RequestedReducer::list(KeyedList::merge_by_key(Field::new(key)).missing_key(no_key))
        }
        Builtin::AddMessages { key } if dialect == Dialect::Agentflow => {
            let key = key.as_deref().unwrap_or("message_id");
            RequestedReducer::list(AddMessages::agentflow_json_by(key))
        }
        Builtin::AddMessages { key: Some(key) } => {
            RequestedReducer::list(AddMessages::langgraph_json_by(&key))
        }
        Builtin::AddMessages { key: None } => RequestedReducer::langgraph_messages(),
    })
}
