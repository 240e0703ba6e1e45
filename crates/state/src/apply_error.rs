//! Errors of updates.

use std::fmt;

use offcut::ErrorChain;

use crate::reducer::Cause;

/// An update that had no effect: the state is unchanged. It holds no content.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The update is not a map of fields.
    #[error(
        "an update must be a map from field names to updates, not {found}; the state is unchanged"
    )]
    NotAMap {
        /// The JSON type found, with its article.
        found: &'static str,
    },
    /// The state has no such field.
    #[error(
        "there is no field `{field}`: declare it, or leave it out of the update; the state is unchanged"
    )]
    UndeclaredField {
        /// Name of the field.
        field: String,
    },
    /// Several updates arrived in parallel for a field that keeps only the last one. LangGraph
    /// rejects this too.
    #[error(
        "{updates} updates arrived in parallel for the field `{field}`, but its reducer `{reducer}` keeps only one: declare a \
         reducer that folds them, such as `append`; the state is unchanged"
    )]
    Parallel {
        /// Name of the field.
        field: String,
        /// Name of its reducer.
        reducer: String,
        /// Number of updates.
        updates: usize,
    },
    /// The reducer rejected the update: OpenArmature's `reducer_error`.
    #[error(
        "the reducer `{reducer}` of the field `{field}` rejected the update; the state is unchanged"
    )]
    Reducer {
        /// Name of the field.
        field: String,
        /// Name of its reducer.
        reducer: String,
        /// Reason given by the reducer.
        #[source]
        cause: Cause,
    },
}

impl ApplyError {
    /// Returns the category: OpenArmature's `reducer_error`, or `parallel_update`,
    /// `undeclared_field` or `update_invalid`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAMap { .. } => "update_invalid",
            Self::UndeclaredField { .. } => "undeclared_field",
            Self::Parallel { .. } => "parallel_update",
            Self::Reducer { .. } => "reducer_error",
        }
    }
}

impl fmt::Debug for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
}
