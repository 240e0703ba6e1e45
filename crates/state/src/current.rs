//! A state: the current values of its fields.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::reducer::Change;
use crate::schema::Schema;

/// The values of a [`Schema`]'s fields. Serializes as a map of the fields that were set.
///
/// A clone is a snapshot and costs one pointer for each field. A value is copied only when it
/// changes while a snapshot still shares it.
///
/// # Guarantees
///
/// - An update applies to all of its fields or to none. After an error the state is unchanged.
/// - It holds declared fields only, each with null or a value of its type.
#[derive(Clone)]
pub struct State {
    schema: Schema,
    /// One for each field of the schema; `None` if the field was never set.
    values: Vec<Option<Arc<Value>>>,
}

impl Schema {
    /// Creates a state with every field at its default.
    #[must_use]
    pub fn state(&self) -> State {
        State {
            schema: self.clone(),
            values: vec![None; self.fields().len()],
        }
    }
}

impl State {
    /// Returns the schema of the fields.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the field's value, or its default if it was never set; `None` if there is no such
    /// field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.schema.find(field).map(|at| self.value(at))
    }

    /// Returns true if the field exists and was set.
    #[must_use]
    pub fn is_set(&self, field: &str) -> bool {
        self.schema
            .find(field)
            .is_some_and(|at| self.values[at].is_some())
    }

    pub(crate) fn value(&self, at: usize) -> &Value {
        self.values[at]
            .as_deref()
            .unwrap_or(&self.schema.fields()[at].initial)
    }

    /// Applies the planned changes, each given with its field's index in the declaration.
    pub(crate) fn commit(&mut self, planned: Vec<(usize, Change<Value>)>) {
        for (at, change) in planned {
            match change {
                Change::Keep => {}
                // Not through `make_mut`, which would first copy the value that is about to be
                // replaced.
                Change::Replace(value) => self.values[at] = Some(Arc::new(value)),
                Change::Edit(edit) => {
                    let initial = &self.schema.fields()[at].initial;
                    edit(Arc::make_mut(
                        self.values[at].get_or_insert_with(|| initial.clone()),
                    ));
                }
            }
        }
    }
}

impl PartialEq for State {
    /// Equal if both have the same fields with the same values, set or by default.
    fn eq(&self, other: &Self) -> bool {
        self.schema.names().eq(other.schema.names())
            && (0..self.values.len()).all(|at| self.value(at) == other.value(at))
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (field, value) in self.schema.fields().iter().zip(&self.values) {
            if let Some(value) = value {
                map.serialize_entry(&field.name, value.as_ref())?;
            }
        }
        map.end()
    }
}

/// Prints the names of the set fields only: the values may hold content of tool results.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.schema.names().zip(
            self.values
                .iter()
                .map(|value| if value.is_some() { "set" } else { "unset" }),
        );
        f.debug_map().entries(fields).finish()
    }
}
