//! A state: what its fields hold now. Updates apply to all of their fields or to none.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::error::{ApplyError, Problem};
use crate::reducer::{Cause, Change, Side};
use crate::schema::{Declared, Schema};
use crate::value::{kind, wrong_type};

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

impl State {
    pub(crate) fn new(schema: Schema) -> Self {
        let values = vec![None; schema.fields().len()];
        Self { schema, values }
    }

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

    fn value(&self, at: usize) -> &Value {
        self.values[at]
            .as_deref()
            .unwrap_or(&self.schema.fields()[at].initial)
    }

    /// Merges an update, a map from fields to what their reducers take.
    ///
    /// # Errors
    ///
    /// The update is no map, names a field that is not declared, or a reducer could not take its
    /// part. Nothing has changed.
    pub fn apply(&mut self, update: Value) -> Result<(), ApplyError> {
        self.apply_parallel([update])
    }

    /// Merges updates that arrived in parallel, such as those of nodes that ran at the same time:
    /// folded in the order given. All of them apply, or none.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply); and where several of them have the same field and its reducer
    /// replaces, since which is the last would be chance.
    pub fn apply_parallel(
        &mut self,
        updates: impl IntoIterator<Item = Value>,
    ) -> Result<(), ApplyError> {
        let planned = self.plan(updates)?;
        self.commit(planned);
        Ok(())
    }

    /// The state with `values` set, whatever the reducers say: what was serialised before.
    ///
    /// # Errors
    ///
    /// `values` is no map, names a field that is not declared, or holds a value of another type
    /// than is declared.
    pub fn restore(schema: &Schema, values: Value) -> Result<Self, ApplyError> {
        let mut state = Self::new(schema.clone());
        let mut planned = Vec::new();
        for (at, mut found) in state.by_field([values])? {
            if let Some(value) = found.pop() {
                let field = &schema.fields()[at];
                check_type(field, &value).map_err(|cause| state.failed(field, cause))?;
                planned.push((at, Change::replace(value)));
            }
        }
        state.commit(planned);
        Ok(state)
    }

    /// What `updates` would change, in the order of the declaration.
    pub(crate) fn plan(
        &self,
        updates: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<(usize, Change<Value>)>, ApplyError> {
        let mut planned = Vec::new();
        for (at, updates) in self.by_field(updates)? {
            let field = &self.schema.fields()[at];
            let change = self.plan_field(at, field, updates)?;
            planned.push((at, change));
        }
        Ok(planned)
    }

    fn plan_field(
        &self,
        at: usize,
        field: &Declared,
        mut updates: Vec<Value>,
    ) -> Result<Change<Value>, ApplyError> {
        let plan = |existing: &Value, update| {
            let change = field.reducer.plan(existing, update)?;
            change
                .replacement()
                .map_or(Ok(()), |value| check_type(field, value))?;
            Ok(change)
        };
        if updates.len() > 1 && !field.reducer.folds() {
            let (reducer, updates) = (field.reducer.name().to_owned(), updates.len());
            return Err(ApplyError::new(
                &field.name,
                Problem::Parallel {
                    field: field.name.clone(),
                    reducer,
                    updates,
                },
                self,
            ));
        }
        let Some(last) = updates.pop() else {
            return Ok(Change::keep());
        };
        if updates.is_empty() {
            return plan(self.value(at), last).map_err(|cause| self.failed(field, cause));
        }
        // Each decides over what the one before it left: a copy, so that the last can still fail.
        let mut folded = self.value(at).clone();
        for update in updates.into_iter().chain([last]) {
            plan(&folded, update)
                .map_err(|cause| self.failed(field, cause))?
                .apply(&mut folded);
        }
        Ok(Change::replace(folded))
    }

    /// The parts of the updates, by field, in the order of the declaration.
    fn by_field(
        &self,
        updates: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<(usize, Vec<Value>)>, ApplyError> {
        let mut parts: Vec<Vec<Value>> = vec![Vec::new(); self.schema.fields().len()];
        let mut undeclared: Option<String> = None;
        for update in updates {
            let Value::Object(fields) = update else {
                return Err(ApplyError::new(
                    "",
                    Problem::NotAMap {
                        found: kind(&update),
                    },
                    self,
                ));
            };
            for (name, part) in fields {
                match self.schema.find(&name) {
                    Some(at) => parts[at].push(part),
                    // The first by name, so that the error does not depend on the order of keys.
                    None => {
                        undeclared = Some(undeclared.map_or(name.clone(), |first| first.min(name)));
                    }
                }
            }
        }
        match undeclared {
            Some(field) => Err(ApplyError::new(
                &field.clone(),
                Problem::UndeclaredField { field },
                self,
            )),
            None => Ok(parts
                .into_iter()
                .enumerate()
                .filter(|(_, parts)| !parts.is_empty())
                .collect()),
        }
    }

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

    fn failed(&self, field: &Declared, cause: Cause) -> ApplyError {
        let (name, reducer) = (field.name.clone(), field.reducer.name().to_owned());
        ApplyError::new(
            &field.name,
            Problem::Reducer {
                field: name,
                reducer,
                cause,
            },
            self,
        )
    }
}

fn check_type(field: &Declared, value: &Value) -> Result<(), Cause> {
    if value.is_null() || field.of.fits(value) {
        return Ok(());
    }
    Err(wrong_type(Side::Update, value, field.of.described()))
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
