//! Errors of updates.

use std::fmt;

use offcut::ErrorChain;

use crate::current::State;
use crate::reducer::Cause;

/// An update that had no effect. It carries the unchanged state, and no other content.
pub struct ApplyError(Box<ErrorParts>);

/// Leaves out the state: it may hold what tools returned.
impl fmt::Debug for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
}

struct ErrorParts {
    kind: ApplyErrorKind,
    state: State,
}

/// Reason for an update without effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyErrorKind {
    /// The update is not a map of fields.
    #[error("an update must be a map from field names to updates, not {found}")]
    NotAMap {
        /// The JSON type found, with its article.
        found: &'static str,
    },
    /// The state has no such field.
    #[error("there is no field `{field}`: declare it, or leave it out of the update")]
    UndeclaredField {
        /// Name of the field.
        field: String,
    },
    /// Several updates arrived in parallel for a field that keeps only the last one. LangGraph
    /// rejects this too.
    #[error(
        "{updates} updates arrived in parallel for the field `{field}`, but its reducer `{reducer}` keeps only one: declare a \
         reducer that folds them, such as `append`"
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
    #[error("the reducer `{reducer}` of the field `{field}` rejected the update")]
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
    pub(crate) fn new(kind: ApplyErrorKind, state: &State) -> Self {
        Self(Box::new(ErrorParts {
            kind,
            state: state.clone(),
        }))
    }

    /// Returns the name of the field at fault; `None` if the whole update is.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match &self.0.kind {
            ApplyErrorKind::NotAMap { .. } => None,
            ApplyErrorKind::UndeclaredField { field }
            | ApplyErrorKind::Parallel { field, .. }
            | ApplyErrorKind::Reducer { field, .. } => Some(field),
        }
    }

    /// Returns the name of the reducer at fault, if there is one.
    #[must_use]
    pub fn reducer(&self) -> Option<&str> {
        match &self.0.kind {
            ApplyErrorKind::Reducer { reducer, .. } | ApplyErrorKind::Parallel { reducer, .. } => {
                Some(reducer)
            }
            ApplyErrorKind::NotAMap { .. } | ApplyErrorKind::UndeclaredField { .. } => None,
        }
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> &ApplyErrorKind {
        &self.0.kind
    }

    /// Returns the state, which is unchanged.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.0.state
    }

    /// Returns the category: OpenArmature's `reducer_error`, or `parallel_update`,
    /// `undeclared_field` or `update_invalid`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match &self.0.kind {
            ApplyErrorKind::NotAMap { .. } => "update_invalid",
            ApplyErrorKind::UndeclaredField { .. } => "undeclared_field",
            ApplyErrorKind::Parallel { .. } => "parallel_update",
            ApplyErrorKind::Reducer { .. } => "reducer_error",
        }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; the state is unchanged", self.0.kind)
    }
}

impl std::error::Error for ApplyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.kind.source()
    }
}
