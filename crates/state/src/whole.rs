//! Reducers of whole values: replacement, maps and closures.

use std::fmt;
use std::marker::PhantomData;

use serde_json::{Map, Value};

use crate::reducer::{BoxError, Cause, Change, Reducer, Side};
use crate::value::{each, wrong_type};

/// Returns the update unchanged: OpenArmature's `last_write_wins`, Agentflow's `replace_value` and
/// `replace_messages`, sherma's `replace`. The default of a field without a reducer.
///
/// Parallel updates can't be folded, because their order is arbitrary. LangGraph rejects them too.
///
/// ```
/// use offcut_state::{LastWriteWins, Reducer};
/// assert_eq!(LastWriteWins.reduce(1, 2)?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LastWriteWins;

impl<T> Reducer<T> for LastWriteWins {
    type Update = T;

    fn name(&self) -> &str {
        "last_write_wins"
    }

    fn plan(&self, _: &T, update: T) -> Result<Change<T>, Cause> {
        Ok(Change::Replace(update))
    }

    fn folds(&self) -> bool {
        false
    }
}

/// OpenArmature's `merge`: a shallow merge of two maps. The update's keys win, including those that
/// hold null.
///
/// ```
/// use offcut_state::{Merge, Reducer};
/// use serde_json::json;
/// assert_eq!(Merge.reduce(json!({"a": 1, "b": 1}), json!({"b": 2}))?, json!({"a": 1, "b": 2}));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Merge;

impl Reducer<Value> for Merge {
    type Update = Value;

    fn name(&self) -> &str {
        "merge"
    }

    fn plan(&self, existing: &Value, update: Value) -> Result<Change<Value>, Cause> {
        check_map(existing)?;
        match update {
            Value::Object(update) => Ok(extend(vec![update])),
            other => Err(wrong_type(Side::Update, &other, "a map")),
        }
    }
}

/// OpenArmature's `merge_all`: merges the maps of the update into the map, one after the other. The
/// last one wins.
///
/// ```
/// use offcut_state::{MergeAll, Reducer};
/// use serde_json::json;
/// let updates = json!([{"a": 2}, {"a": 3, "b": 3}]);
/// assert_eq!(MergeAll.reduce(json!({"a": 1}), updates)?, json!({"a": 3, "b": 3}));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeAll;

impl Reducer<Value> for MergeAll {
    type Update = Value;

    fn name(&self) -> &str {
        "merge_all"
    }

    fn plan(&self, existing: &Value, update: Value) -> Result<Change<Value>, Cause> {
        check_map(existing)?;
        let Value::Array(updates) = update else {
            return Err(wrong_type(Side::Update, &update, "a list of maps"));
        };
        let maps = each(updates, "maps", |item| match item {
            Value::Object(map) => Ok(map),
            other => Err(other),
        })?;
        Ok(extend(maps))
    }
}

fn check_map(existing: &Value) -> Result<(), Cause> {
    if existing.is_object() {
        Ok(())
    } else {
        Err(wrong_type(Side::Existing, existing, "a map"))
    }
}

fn extend(updates: Vec<Map<String, Value>>) -> Change<Value> {
    Change::Edit(Box::new(|value: &mut Value| {
        if let Value::Object(map) = value {
            map.extend(updates.into_iter().flatten());
        }
    }))
}

/// A closure as a reducer: see [`custom`].
pub struct Custom<U, F> {
    name: String,
    reduce: F,
    update: PhantomData<fn(U)>,
}

/// Creates a reducer from a pure closure, which takes the value and the update and returns the new
/// value. The value is only borrowed, so the parts that stay are copied. To change a long list in
/// place, implement [`Reducer`] with [`Change::Edit`].
///
/// ```
/// use offcut_state::{Reducer, custom};
/// let max = custom("max", |existing: &u32, update: u32| Ok::<_, std::convert::Infallible>(update.max(*existing)));
/// assert_eq!(max.reduce(3, 2)?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn custom<T, U, E, F>(name: impl Into<String>, reduce: F) -> Custom<U, F>
where
    F: Fn(&T, U) -> Result<T, E> + Send + Sync,
    E: Into<BoxError>,
{
    Custom {
        name: name.into(),
        reduce,
        update: PhantomData,
    }
}

impl<T, U, E, F> Reducer<T> for Custom<U, F>
where
    F: Fn(&T, U) -> Result<T, E> + Send + Sync,
    E: Into<BoxError>,
{
    type Update = U;

    fn name(&self) -> &str {
        &self.name
    }

    fn plan(&self, existing: &T, update: U) -> Result<Change<T>, Cause> {
        (self.reduce)(existing, update)
            .map(Change::Replace)
            .map_err(Cause::failed)
    }
}

impl<U, F> fmt::Debug for Custom<U, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
