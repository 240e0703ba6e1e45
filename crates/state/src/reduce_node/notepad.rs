//! Targets that a node reads and changes: a plain map or a declared state.

use serde_json::{Map, Value, json};

use crate::current::State;
use crate::reducer::BoxError;

/// A set of values under keys, several of which can be condensed into one.
pub trait CondenseTarget: Send + Sync {
    /// Returns the value under `key`, if there is one.
    fn value(&self, key: &str) -> Option<&Value>;

    /// Checks that an output fits under `output_key` once the keys of `delete` are gone. Called
    /// before the model, so that no call is wasted.
    ///
    /// # Errors
    ///
    /// The output does not fit.
    fn accepts(&self, output_key: &str, delete: &[String]) -> Result<(), BoxError>;

    /// Puts `output` under `output_key` and deletes the keys of `delete`: all or nothing. Missing
    /// keys are not an error.
    ///
    /// # Errors
    ///
    /// The output does not fit. Nothing has changed.
    fn condense(
        &mut self,
        output_key: &str,
        output: String,
        delete: &[String],
    ) -> Result<(), BoxError>;
}

/// Lár's `GraphState`: a map.
impl CondenseTarget for Map<String, Value> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.get(key)
    }

    fn accepts(&self, _: &str, _: &[String]) -> Result<(), BoxError> {
        Ok(())
    }

    fn condense(
        &mut self,
        output_key: &str,
        output: String,
        delete: &[String],
    ) -> Result<(), BoxError> {
        for key in delete {
            self.remove(key);
        }
        self.insert(output_key.to_owned(), Value::String(output));
        Ok(())
    }
}

/// The output is an update of its field, merged by its reducer. A deleted field returns to its
/// default. A field that holds null, or was never set and has no default, is absent.
impl CondenseTarget for State {
    fn value(&self, key: &str) -> Option<&Value> {
        let is_empty = |value: &Value| match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        self.get(key)
            .filter(|value| !value.is_null() && (self.is_set(key) || !is_empty(value)))
    }

    fn accepts(&self, output_key: &str, _: &[String]) -> Result<(), BoxError> {
        match self.schema().field(output_key) {
            None => Err(format!("there is no field `{output_key}`: declare it").into()),
            // Only the other reducers know whether they accept a text.
            Some(field) if !field.reducer.folds() && !field.field_type.fits(&json!("")) => {
                Err(format!(
                    "the field `{output_key}` holds {}: declare it as `str`",
                    field.field_type.described()
                )
                .into())
            }
            Some(_) => Ok(()),
        }
    }

    fn condense(
        &mut self,
        output_key: &str,
        output: String,
        delete: &[String],
    ) -> Result<(), BoxError> {
        let planned = self.plan([json!({ output_key: output })])?;
        for key in delete {
            self.unset(key);
        }
        self.commit(planned);
        Ok(())
    }
}
