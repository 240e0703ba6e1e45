//! State declared in a file: YAML (feature `yaml`) or JSON.

mod builtin;
mod dialect;
mod node;
#[cfg(feature = "yaml")]
mod yaml;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::reducer::Reducer;
use crate::schema::{AnyReducer, FieldType, Schema, SchemaWarning, StateField, check_default};
use crate::schema_error::{Place, SchemaError};
use builtin::{RequestedReducer, Takes};
use node::{DeclaredNode, Shape, listed};

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

    /// Adds a reducer, replacing an earlier one of the same name. The name of a built-in reducer is
    /// an error when a declaration is read.
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
    /// Reads a declaration in YAML. JSON works too, since it is valid YAML, and its errors then
    /// name lines.
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
    /// The text is not valid YAML, or not a valid declaration. The error names the line and the
    /// path.
    #[cfg(feature = "yaml")]
    pub fn from_yaml(text: &str, reducers: &Reducers) -> Result<Self, SchemaError> {
        read(yaml::parse(text)?, reducers)
    }

    /// Reads a declaration in JSON: the same map as in YAML, without the feature `yaml`.
    ///
    /// # Errors
    ///
    /// The text is not valid JSON, or not a valid declaration. The error names the path, or the
    /// line of a JSON syntax error.
    pub fn from_json(text: &str, reducers: &Reducers) -> Result<Self, SchemaError> {
        let node = serde_json::from_str(text).map_err(|error| {
            let place = Place::line(error.line());
            SchemaError::declaration(place, "invalid JSON: correct the syntax").with_source(error)
        })?;
        read(node, reducers)
    }
}

fn read(node: DeclaredNode, reducers: &Reducers) -> Result<Schema, SchemaError> {
    if let Some(name) = reducers.by_name.keys().find(|name| builtin::is_known(name)) {
        let message = format!(
            "the registered reducer `{name}` has the name of a built-in reducer: rename it"
        );
        return Err(SchemaError::configuration(Place::default(), message));
    }
    let place = node.place.clone();
    let [dialect, fields] = node.entries(["dialect", "fields"])?;
    let Some(dialect) = dialect else {
        let known = listed(Dialect::WORDS.map(|(word, _)| word));
        let message = format!("`dialect` is missing: set it to one of {known}");
        return Err(SchemaError::declaration(place, message));
    };
    let dialect = dialect.one_of(&Dialect::WORDS)?;
    let Some(fields) = fields else {
        let message = "`fields` is missing: list the fields of the state";
        return Err(SchemaError::declaration(place, message));
    };
    let mut warnings = Vec::new();
    let fields = fields.items("list the fields of the state")?.into_iter();
    let fields = fields
        .map(|node| field(node, dialect, reducers, &mut warnings))
        .collect::<Result<Vec<_>, _>>()?;
    Schema::with_warnings(fields, warnings)
}

/// The type that a word stands for. sherma reads an unknown type as `str`; in the other dialects it
/// is an error.
fn read_type(
    word: DeclaredNode,
    dialect: Dialect,
    warnings: &mut Vec<SchemaWarning>,
) -> Result<FieldType, SchemaError> {
    let unknown = match &word.shape {
        Shape::Scalar(Value::String(word)) if dialect == Dialect::Sherma => {
            (!FieldType::WORDS.iter().any(|(known, _)| known == word)).then_some(word)
        }
        _ => None,
    };
    let Some(unknown) = unknown else {
        return word.one_of(&FieldType::WORDS);
    };
    let known = listed(FieldType::WORDS.map(|(known, _)| known));
    let message =
        format!("sherma has no type `{unknown}`, so it is read as `str`; known types are {known}");
    let place = word.place;
    warnings.push(SchemaWarning { place, message });
    Ok(FieldType::Str)
}

fn field(
    node: DeclaredNode,
    dialect: Dialect,
    reducers: &Reducers,
    warnings: &mut Vec<SchemaWarning>,
) -> Result<StateField, SchemaError> {
    let place = node.place.clone();
    let [name, field_type, default, reducer] =
        node.entries(["name", "type", "default", "reducer"])?;
    let Some(name) = name else {
        return Err(SchemaError::declaration(
            place,
            "the field has no `name`: give it one",
        ));
    };
    let name = name.string()?;
    let field_type = field_type
        .map(|node| read_type(node, dialect, warnings))
        .transpose()?;
    let reducer = reducer.filter(|node| !node.is_null());
    let at = reducer.as_ref().map_or(&place, |node| &node.place).clone();
    let requested = match reducer {
        Some(node) => Some(builtin::read(node, dialect, &reducers.by_name)?),
        None if dialect == Dialect::Sherma
            && name == "messages"
            && field_type == Some(FieldType::List) =>
        {
            Some(RequestedReducer::langgraph_messages())
        }
        None => None,
    };
    let mut field = StateField::new(name, field_type.unwrap_or_default());
    if let Some(RequestedReducer { reducer, takes }) = requested {
        let needs = match takes {
            Takes::Anything => field.field_type,
            Takes::List => FieldType::List,
            Takes::Map => FieldType::Map,
        };
        if dialect == Dialect::Sherma && field.field_type != FieldType::List {
            let message = format!(
                "`{}` is not a list, so its reducer is ignored and updates replace its value",
                field.name
            );
            warnings.push(SchemaWarning { place: at, message });
        } else if field.field_type == needs || field.field_type == FieldType::Any {
            // A field without a type gets the one that its reducer needs, so that it starts empty
            // and not null.
            field.field_type = needs;
            field.reducers.push(reducer);
        } else {
            let (name, needs, is) = (
                reducer.name(),
                needs.described(),
                field.field_type.described(),
            );
            let message = format!("`{name}` needs {needs}, but this field is {is}: change one");
            return Err(SchemaError::configuration(at, message));
        }
    }
    if let Some(default) = default {
        let at = default.place.clone();
        field.default = default.into_value();
        check_default(&field.name, field.field_type, &field.default, at)?;
    }
    field.place = Some(place);
    Ok(field)
}
