//! State declared in a file: YAML (feature `yaml`) or JSON.

mod builtin;
mod dialect;
#[cfg(feature = "yaml")]
mod yaml;

use std::collections::BTreeMap;
use std::sync::Arc;

use offcut::json::JsonText;
use serde::Deserialize;
use serde_json::Value;

use crate::reducer::Reducer;
use crate::schema::{AnyReducer, FieldType, Schema, StateField};
use crate::schema_error::{CONFIGURATION, DECLARATION, SchemaError};
use builtin::RequestedReducer;

pub use dialect::Dialect;

/// Your own reducers, under the names that declarations use.
///
/// ```
/// use offcut_state::{Reducers, Schema, custom};
/// use serde_json::{Value, json};
///
/// let max = custom("max", |existing: &Value, update: Value| match (existing.as_u64(), update.as_u64()) {
///     (Some(existing), Some(update)) => Ok(json!(existing.max(update))),
///     _ => Err("this takes integers"),
/// });
/// let declared = r#"{"dialect": "openarmature", "fields": [
///     {"name": "peak", "type": "int", "default": 0, "reducer": "max"}
/// ]}"#;
/// let mut state = Schema::from_json(declared, &Reducers::new().with("max", max))?.state();
/// state.apply(json!({"peak": 3}))?;
/// state.apply(json!({"peak": 2}))?;
/// assert_eq!(state.get("peak"), Some(&json!(3)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Reducers {
    by_name: BTreeMap<String, AnyReducer>,
}

impl Reducers {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reducer, replacing an earlier one of the same name. It comes before a built-in one of
    /// that name.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        reducer: impl Reducer<Value, Update = Value> + 'static,
    ) -> Self {
        self.by_name.insert(name.into(), Arc::new(reducer));
        self
    }
}

impl std::fmt::Debug for Reducers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

impl Schema {
    /// Reads a declaration in YAML. JSON works too, since it is valid YAML.
    ///
    /// The declaration is a map with a [`dialect`](Dialect) and a list of `fields`. Each field has
    /// a `name` and may have a `type` ([`FieldType`]), a `default` and a `reducer`. A reducer is a
    /// word, a registered name, or a map from one word to its parameters.
    ///
    /// ```
    /// use offcut_state::{Reducers, Schema};
    /// use serde_json::json;
    ///
    /// let schema = Schema::from_yaml("
    /// dialect: openarmature
    /// fields:
    ///   - name: errors
    ///     type: list
    ///     reducer: {bounded_append: {max_len: 2}}
    /// ", &Reducers::new())?;
    /// let mut state = schema.state();
    /// state.apply(json!({"errors": ["a", "b", "c"]}))?;
    /// assert_eq!(state.get("errors"), Some(&json!(["b", "c"])));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// YAML is read with its core schema, in which `yes` is a string. Anchors, aliases, tags and
    /// more than 100 levels of nesting are rejected.
    ///
    /// # Errors
    ///
    /// The text is not valid YAML, and the error names the line; or it is not a valid declaration,
    /// and the error names the path.
    #[cfg(feature = "yaml")]
    pub fn from_yaml(text: &str, reducers: &Reducers) -> Result<Self, SchemaError> {
        read(yaml::parse(text)?, reducers)
    }

    /// Reads a declaration in JSON: the same map as in YAML, without the feature `yaml`.
    ///
    /// # Errors
    ///
    /// The text is not valid JSON, and the error names the line; or it is not a valid declaration,
    /// and the error names the path.
    pub fn from_json(text: &str, reducers: &Reducers) -> Result<Self, SchemaError> {
        let written = serde_json::from_str(text);
        let written = written.map_err(|error| SchemaError::syntax(error.line(), "JSON", error))?;
        let json = JsonText::parse(text).ok();
        if let Some((key, at)) = json.as_ref().and_then(JsonText::doubled_key) {
            let line = text[..at].matches('\n').count() + 1;
            return Err(SchemaError::doubled(line, key));
        }
        read(written, reducers)
    }
}

/// A declaration as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map")]
struct Declaration {
    dialect: Dialect,
    fields: Vec<DeclaredField>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map")]
struct DeclaredField {
    name: String,
    #[serde(rename = "type")]
    field_type: Option<FieldType>,
    #[serde(default)]
    default: Value,
    reducer: Option<Value>,
}

fn read(written: Value, reducers: &Reducers) -> Result<Schema, SchemaError> {
    let declared: Declaration = serde_path_to_error::deserialize(written).map_err(|error| {
        let place = match error.path().iter().next() {
            None => "the declaration".to_owned(),
            Some(_) => error.path().to_string(),
        };
        SchemaError::new(DECLARATION, place, error.inner().to_string())
    })?;
    let fields = declared.fields.into_iter().enumerate();
    let fields = fields.map(|(at, one)| {
        let place = format!("fields[{at}].reducer");
        field(one, &place, declared.dialect, reducers)
    });
    Schema::new(fields.collect::<Result<Vec<_>, _>>()?)
}

fn field(
    declared: DeclaredField,
    at: &str,
    dialect: Dialect,
    reducers: &Reducers,
) -> Result<StateField, SchemaError> {
    let field_type = declared.field_type.unwrap_or_default();
    let is_list = field_type == FieldType::List;
    let requested = match declared.reducer {
        Some(written) => Some(builtin::read(written, at, dialect, &reducers.by_name)?),
        None if dialect == Dialect::Sherma && is_list && declared.name == "messages" => {
            Some(RequestedReducer::langgraph_messages())
        }
        None => None,
    };
    let mut field = StateField::new(declared.name, field_type).default(declared.default);
    if let Some(RequestedReducer { reducer, takes }) = requested {
        let needs = match takes {
            FieldType::Any => field_type,
            takes => takes,
        };
        if dialect == Dialect::Sherma && !is_list {
            let field = field.name.as_str();
            tracing::warn!(
                field,
                "sherma ignores the reducer of a field that is not a list"
            );
        } else if field_type == needs || field_type == FieldType::Any {
            // A field without a type gets the one that its reducer needs, so that it starts empty
            // and not null.
            field.field_type = needs;
            field.reducer = Some(reducer);
        } else {
            let message = format!(
                "`{}` needs {}, but this field is {}: change one",
                reducer.name(),
                needs.described(),
                field_type.described()
            );
            return Err(SchemaError::new(CONFIGURATION, at, message));
        }
    }
    Ok(field)
}
