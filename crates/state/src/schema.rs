//! The fields of a state, declared in Rust. `declare` reads them from files.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::reducer::Reducer;
use crate::schema_error::{DECLARATION, SchemaError};
use crate::value::kind;
use crate::whole::LastWriteWins;

/// A reducer of declared state: JSON in, JSON out. Every reducer of this crate is one.
pub(crate) type AnyReducer = Arc<dyn Reducer<Value, Update = Value>>;

/// The type of a field. Null fits every type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FieldType {
    /// Anything. `any` in files.
    #[default]
    Any,
    /// A boolean. `bool`, `boolean`.
    #[serde(alias = "boolean")]
    Bool,
    /// An integer. `int`, `integer`.
    #[serde(alias = "integer")]
    Int,
    /// Any number. `float`, `number`.
    #[serde(alias = "number")]
    Float,
    /// A string. `str`, `string`.
    #[serde(alias = "string")]
    Str,
    /// A list. `list`, `array`.
    #[serde(alias = "array")]
    List,
    /// A map. `dict`, `map`, `object`.
    #[serde(alias = "dict", alias = "object")]
    Map,
}

impl FieldType {
    /// Describes the type with its article, for errors.
    pub(crate) fn described(self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Bool => "a boolean",
            Self::Int => "an integer",
            Self::Float => "a number",
            Self::Str => "a string",
            Self::List => "a list",
            Self::Map => "a map",
        }
    }

    pub(crate) fn fits(self, value: &Value) -> bool {
        match self {
            _ if value.is_null() => true,
            Self::Any => true,
            Self::Bool => value.is_boolean(),
            Self::Int => value.is_i64() || value.is_u64(),
            Self::Float => value.is_number(),
            Self::Str => value.is_string(),
            Self::List => value.is_array(),
            Self::Map => value.is_object(),
        }
    }

    fn empty(self) -> Value {
        match self {
            Self::List => Value::Array(Vec::new()),
            Self::Map => Value::Object(Map::new()),
            Self::Any | Self::Bool | Self::Int | Self::Float | Self::Str => Value::Null,
        }
    }
}

/// A declared field of a state.
///
/// # Default
///
/// - `default`: an empty list or map for a field of that type, null for any other
/// - `reducer`: [`LastWriteWins`]
#[derive(Clone)]
pub struct StateField {
    pub(crate) name: String,
    pub(crate) field_type: FieldType,
    pub(crate) default: Value,
    pub(crate) reducer: Option<AnyReducer>,
}

impl StateField {
    /// Creates a field `name` that holds values of this type.
    pub fn new(name: impl Into<String>, field_type: FieldType) -> Self {
        Self {
            name: name.into(),
            field_type,
            default: Value::Null,
            reducer: None,
        }
    }

    /// Sets the value before the first update. Null is the same as no default.
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = value.into();
        self
    }

    /// Sets the reducer that merges updates into the field.
    #[must_use]
    pub fn reducer(mut self, reducer: impl Reducer<Value, Update = Value> + 'static) -> Self {
        self.reducer = Some(Arc::new(reducer));
        self
    }
}

/// The fields of a state. Clones are cheap and share one schema.
///
/// ```
/// use offcut_state::{AddMessages, FieldType, Schema, StateField};
/// use serde_json::json;
///
/// let schema = Schema::new([
///     StateField::new("messages", FieldType::List).reducer(AddMessages::langgraph_json()),
///     StateField::new("summary", FieldType::Str),
/// ])?;
/// let mut state = schema.state();
/// state.apply(json!({"messages": [{"id": "1", "role": "user", "content": "hi"}], "summary": "a greeting"}))?;
/// assert_eq!(state.get("summary"), Some(&json!("a greeting")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Schema(Arc<[Declared]>);

/// A field that has passed all checks.
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) field_type: FieldType,
    pub(crate) initial: Arc<Value>,
    pub(crate) reducer: AnyReducer,
}

impl Schema {
    /// Creates a schema of these fields.
    ///
    /// # Errors
    ///
    /// A field has no name, a duplicate name, or a default of the wrong type.
    pub fn new(fields: impl IntoIterator<Item = StateField>) -> Result<Self, SchemaError> {
        let mut declared: Vec<Declared> = Vec::new();
        for (at, field) in fields.into_iter().enumerate() {
            let place = format!("fields[{at}]");
            let field = check(field, &place)?;
            if let Some(first) = declared.iter().position(|one| one.name == field.name) {
                let message = format!(
                    "the field `{}` is already declared as fields[{first}]: remove one",
                    field.name
                );
                return Err(SchemaError::new(DECLARATION, place + ".name", message));
            }
            declared.push(field);
        }
        Ok(Self(declared.into()))
    }

    /// Returns the names of the fields, in declaration order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|field| field.name.as_str())
    }

    pub(crate) fn fields(&self) -> &[Declared] {
        &self.0
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.names().position(|known| known == name)
    }
}

fn check(field: StateField, place: &str) -> Result<Declared, SchemaError> {
    let StateField {
        name,
        field_type,
        default,
        reducer,
    } = field;
    if name.is_empty() {
        let message = "the field has no name: give it one";
        return Err(SchemaError::new(
            DECLARATION,
            format!("{place}.name"),
            message,
        ));
    }
    if !field_type.fits(&default) {
        let message = format!(
            "the default of `{name}` is {}, but its type is {}: change one",
            kind(&default),
            field_type.described()
        );
        return Err(SchemaError::new(
            DECLARATION,
            format!("{place}.default"),
            message,
        ));
    }
    let initial = Arc::new(if default.is_null() {
        field_type.empty()
    } else {
        default
    });
    Ok(Declared {
        name,
        field_type,
        initial,
        reducer: reducer.unwrap_or_else(|| Arc::new(LastWriteWins)),
    })
}

impl fmt::Debug for StateField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateField")
            .field("name", &self.name)
            .field("field_type", &self.field_type)
            .field("reducer", &self.reducer.as_ref().map(|one| one.name()))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(
                self.fields()
                    .iter()
                    .map(|field| (&field.name, (field.field_type, field.reducer.name()))),
            )
            .finish()
    }
}
