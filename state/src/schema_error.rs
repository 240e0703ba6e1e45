//! The errors of declarations.

use std::fmt;

use crate::reducer::BoxError;

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

    pub(crate) fn line(line: usize) -> Self {
        Self {
            line: Some(line),
            path: String::new(),
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

    pub(crate) fn declaration(place: Place, message: impl Into<String>) -> Self {
        Self::new(SchemaErrorKind::Declaration, place, message)
    }

    pub(crate) fn configuration(place: Place, message: impl Into<String>) -> Self {
        Self::new(SchemaErrorKind::ReducerConfiguration, place, message)
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
