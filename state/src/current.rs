//! A state: what its fields hold now.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::reducer::Change;
use crate::schema::Schema;

/// The values of a [`Schema`]'s fields. Serialises as a map of the fields that were set.
///
/// A clone is a snapshot and costs a pointer for each field: a value is copied only when it is
/// changed while a snapshot still has it.
///
/// # Guarantees
///
/// - An update applies to all of its fields or to none; after an error the state is as it was.
/// - Only declared fields are in it, each holding what its type allows, or null.
#[derive(Clone)]
pub struct State {
    schema: Schema,
    /// One for each field of the schema; `None` where it was never set.
    values: Vec<Option<Arc<Value>>>,
}

impl Schema {
    /// A state with every field at its default.
    #[must_use]
    pub fn state(&self) -> State {
        State {
            schema: self.clone(),
            values: vec![None; self.fields().len()],
        }
    }
}

impl State {
    /// The fields that it has.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What the field holds: its default if it was never set. `None` if there is no such field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.schema.find(field).map(|at| self.value(at))
    }

    /// Whether the field is there and was set.
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

    /// Applies what was planned for each field, given by its place in the declaration.
    pub(crate) fn commit(&mut self, planned: Vec<(usize, Change<Value>)>) {
        for (at, change) in planned {
            if change.is_keep() {
                continue;
            }
            let value =
                self.values[at].get_or_insert_with(|| self.schema.fields()[at].initial.clone());
            if change.replacement().is_some() {
                // Not through `make_mut`: what is replaced need not be copied first.
                *value = Arc::default();
            }
            change.apply(Arc::make_mut(value));
        }
    }

    /// Puts the field back to what it was before it was set.
    pub(crate) fn unset(&mut self, field: &str) {
        if let Some(at) = self.schema.find(field) {
            self.values[at] = None;
        }
    }
}

impl PartialEq for State {
    /// Whether both have the same fields with the same values, whether set or by default.
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

/// Which fields are set, and not to what: they may hold what tools returned.
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
