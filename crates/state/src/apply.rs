//! Applies updates to a state: to all of their fields or to none.

use serde_json::Value;

use crate::apply_error::ApplyError;
use crate::current::State;
use crate::reducer::{Cause, Change, Side};
use crate::schema::{Declared, Schema};
use crate::value::{kind, wrong_type};

impl State {
    /// Merges an update, a map from field names to the updates that their reducers take.
    ///
    /// # Errors
    ///
    /// The update is not a map, names an undeclared field, or a reducer rejects its part. The state
    /// is unchanged.
    pub fn apply(&mut self, update: Value) -> Result<(), ApplyError> {
        self.apply_parallel([update])
    }

    /// Merges updates that arrived in parallel, such as those of nodes that ran at the same time.
    /// They are folded in the order given. All of them apply, or none.
    ///
    /// # Errors
    ///
    /// The same as for [`apply`](Self::apply). Also if several updates set the same field and its
    /// reducer replaces the value, because the order in which parallel updates arrive is arbitrary.
    pub fn apply_parallel(
        &mut self,
        updates: impl IntoIterator<Item = Value>,
    ) -> Result<(), ApplyError> {
        let planned = self.plan(updates)?;
        self.commit(planned);
        Ok(())
    }

    /// Creates a state from `values`, bypassing the reducers. Use it for a state that was
    /// serialized before.
    ///
    /// # Errors
    ///
    /// `values` is not a map, names an undeclared field, or holds a value of a type other than the
    /// declared one.
    pub fn restore(schema: &Schema, values: Value) -> Result<Self, ApplyError> {
        let mut state = schema.state();
        let mut planned = Vec::new();
        for (at, mut found) in state.by_field([values])? {
            if let Some(value) = found.pop() {
                let field = &schema.fields()[at];
                check_type(field, &value).map_err(|cause| rejected(field, cause))?;
                planned.push((at, Change::Replace(value)));
            }
        }
        state.commit(planned);
        Ok(state)
    }

    /// Plans the changes of `updates`, in declaration order.
    pub(crate) fn plan(
        &self,
        updates: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<(usize, Change<Value>)>, ApplyError> {
        let by_field = self.by_field(updates)?.into_iter();
        by_field
            .map(|(at, updates)| Ok((at, self.plan_field(at, updates)?)))
            .collect()
    }

    fn plan_field(&self, at: usize, mut updates: Vec<Value>) -> Result<Change<Value>, ApplyError> {
        let field = &self.schema().fields()[at];
        let plan = |existing: &Value, update| {
            let change = field.reducer.plan(existing, update)?;
            if let Change::Replace(value) = &change {
                check_type(field, value)?;
            }
            Ok(change)
        };
        if updates.len() > 1 && !field.reducer.folds() {
            return Err(ApplyError::Parallel {
                field: field.name.clone(),
                reducer: field.reducer.name().to_owned(),
                updates: updates.len(),
            });
        }
        let Some(last) = updates.pop() else {
            return Ok(Change::Keep);
        };
        if updates.is_empty() {
            return plan(self.value(at), last).map_err(|cause| rejected(field, cause));
        }
        // Each update is planned on the outcome of the previous one. This is a copy, because the last
        // one can still fail.
        let mut folded = self.value(at).clone();
        for update in updates.into_iter().chain([last]) {
            plan(&folded, update)
                .map_err(|cause| rejected(field, cause))?
                .apply(&mut folded);
        }
        Ok(Change::Replace(folded))
    }

    /// Groups the parts of the updates by field, in declaration order.
    fn by_field(
        &self,
        updates: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<(usize, Vec<Value>)>, ApplyError> {
        let mut parts: Vec<Vec<Value>> = vec![Vec::new(); self.schema().fields().len()];
        let mut undeclared: Option<String> = None;
        for update in updates {
            let Value::Object(fields) = update else {
                let found = kind(&update);
                return Err(ApplyError::NotAMap { found });
            };
            for (name, part) in fields {
                match self.schema().find(&name) {
                    Some(at) => parts[at].push(part),
                    // The first by name, so that the error does not depend on the order of keys.
                    None => {
                        undeclared = Some(undeclared.map_or(name.clone(), |first| first.min(name)));
                    }
                }
            }
        }
        match undeclared {
            Some(field) => Err(ApplyError::UndeclaredField { field }),
            None => Ok(parts
                .into_iter()
                .enumerate()
                .filter(|(_, parts)| !parts.is_empty())
                .collect()),
        }
    }
}

fn rejected(field: &Declared, cause: Cause) -> ApplyError {
    ApplyError::Reducer {
        field: field.name.clone(),
        reducer: field.reducer.name().to_owned(),
        cause,
    }
}

fn check_type(field: &Declared, value: &Value) -> Result<(), Cause> {
    if field.field_type.fits(value) {
        Ok(())
    } else {
        Err(wrong_type(
            Side::Update,
            value,
            field.field_type.described(),
        ))
    }
}
