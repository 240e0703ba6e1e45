//! What can be wrong with a declaration, and with an update.

use std::fmt;

use crate::current::State;
use crate::reducer::{BoxError, Cause};

/// Where in a declaration something is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1, where the declaration is YAML; or where JSON could not be read.
    pub line: Option<usize>,
    /// The way to it: `fields[2].reducer.bounded_append.max_len`. Empty for the whole of it.
    pub path: String,
}

impl Place {
    pub(crate) fn path(path: impl Into<String>) -> Self {
        Self {
            line: None,
            path: path.into(),
        }
    }

    /// The place `name` in this one, on the same line.
    pub(crate) fn at(&self, name: &str) -> Self {
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        };
        Self {
            line: self.line,
            path,
        }
    }

    /// The place of the n-th item of this one, from 0.
    pub(crate) fn item(&self, at: usize) -> Self {
        Self {
            line: self.line,
            path: format!("{}[{at}]", self.path),
        }
    }

    pub(crate) fn on_line(self, line: Option<usize>) -> Self {
        Self {
            line: line.or(self.line),
            ..self
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.path.as_str()) {
            (Some(line), "") => write!(f, "line {line}"),
            (Some(line), path) => write!(f, "line {line}, {path}"),
            (None, "") => f.write_str("the declaration"),
            (None, path) => f.write_str(path),
        }
    }
}

/// What kind of mistake a declaration holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemaErrorKind {
    /// It can't be read, or names what there is not.
    Declaration,
    /// A reducer's parameters can't be: OpenArmature's `reducer_configuration_invalid`.
    ReducerConfiguration,
    /// A field has two reducers: OpenArmature's `conflicting_reducers`.
    ConflictingReducers,
}

/// Why a state can't be declared so. Found before any data is seen.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {message}")]
pub struct SchemaError {
    kind: SchemaErrorKind,
    place: Place,
    message: String,
    #[source]
    source: Option<BoxError>,
}

impl SchemaError {
    pub(crate) fn new(kind: SchemaErrorKind, place: Place, message: impl Into<String>) -> Self {
        Self {
            kind,
            place,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of mistake it is.
    #[must_use]
    pub fn kind(&self) -> SchemaErrorKind {
        self.kind
    }

    /// The category as OpenArmature names it; `state_declaration_invalid` for what it has no name
    /// for.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            SchemaErrorKind::Declaration => "state_declaration_invalid",
            SchemaErrorKind::ReducerConfiguration => "reducer_configuration_invalid",
            SchemaErrorKind::ConflictingReducers => "conflicting_reducers",
        }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// An update that had no effect. It carries the state as it was, and no other content.
pub struct ApplyError(Box<Inner>);

struct Inner {
    field: String,
    problem: Problem,
    state: State,
}

/// Why an update had no effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// An update is a map of fields.
    #[error("an update is {found}: it has to be a map from fields to their updates")]
    NotAMap {
        /// What it is, with its article.
        found: &'static str,
    },
    /// The state has no such field.
    #[error("there is no field `{field}`: declare it, or leave it out of the update")]
    UndeclaredField {
        /// Its name.
        field: String,
    },
    /// Several updates arrived in parallel for a field that keeps only the last one. LangGraph
    /// refuses this too.
    #[error(
        "{updates} updates arrived in parallel for the field `{field}`, and its reducer `{reducer}` keeps one: declare a \
         reducer that folds them, such as `append`"
    )]
    Parallel {
        /// The field.
        field: String,
        /// Its reducer.
        reducer: String,
        /// How many.
        updates: usize,
    },
    /// The reducer could not take the update: OpenArmature's `reducer_error`.
    #[error("the reducer `{reducer}` of the field `{field}` could not take the update")]
    Reducer {
        /// The field.
        field: String,
        /// Its reducer.
        reducer: String,
        /// Why.
        #[source]
        cause: Cause,
    },
}

impl ApplyError {
    pub(crate) fn new(field: &str, problem: Problem, state: &State) -> Self {
        Self(Box::new(Inner {
            field: field.to_owned(),
            problem,
            state: state.clone(),
        }))
    }

    /// The field, if it is about one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        Some(self.0.field.as_str()).filter(|field| !field.is_empty())
    }

    /// The reducer's name, if one is to blame.
    #[must_use]
    pub fn reducer(&self) -> Option<&str> {
        match &self.0.problem {
            Problem::Reducer { reducer, .. } | Problem::Parallel { reducer, .. } => Some(reducer),
            Problem::NotAMap { .. } | Problem::UndeclaredField { .. } => None,
        }
    }

    /// Why.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// The state as it was and is.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.0.state
    }

    /// The category: `reducer_error` as in OpenArmature, `parallel_update`, `undeclared_field` or
    /// `update_invalid`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match &self.0.problem {
            Problem::NotAMap { .. } => "update_invalid",
            Problem::UndeclaredField { .. } => "undeclared_field",
            Problem::Parallel { .. } => "parallel_update",
            Problem::Reducer { .. } => "reducer_error",
        }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; the state is as it was", self.0.problem)
    }
}

/// Without the state: it may hold what tools returned.
impl fmt::Debug for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyError")
            .field("problem", &self.0.problem)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for ApplyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.problem {
            Problem::Reducer { cause, .. } => Some(cause),
            Problem::NotAMap { .. }
            | Problem::UndeclaredField { .. }
            | Problem::Parallel { .. } => None,
        }
    }
}
