//! Errors of declarations.

use std::fmt;

use offcut::ErrorChain;

use crate::reducer::BoxError;

/// A place in a declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line number, from 1, of a mistake in the text.
    pub line: Option<usize>,
    /// Path, such as `fields[2].reducer.bounded_append.max_len`. Empty for the whole declaration.
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

    /// Returns the place `name` inside this one.
    pub(crate) fn at(&self, name: &str) -> Self {
        Self::path(format!("{}.{name}", self.path))
    }

    /// Returns the place of `inner` inside this one.
    pub(crate) fn inside(&self, inner: &serde_path_to_error::Path) -> Self {
        match inner.iter().next() {
            None => self.clone(),
            Some(_) if self.path.is_empty() => Self::path(inner.to_string()),
            Some(_) => self.at(&inner.to_string()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.path.as_str()) {
            (Some(line), _) => write!(f, "line {line}"),
            (None, "") => f.write_str("the declaration"),
            (None, path) => f.write_str(path),
        }
    }
}

/// A kind of mistake in a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemaErrorKind {
    /// The declaration is unreadable, or uses a word or name that does not exist.
    Declaration,
    /// A reducer's parameters are invalid: OpenArmature's `reducer_configuration_invalid`.
    ReducerConfiguration,
    /// A field has two reducers: OpenArmature's `conflicting_reducers`.
    ConflictingReducers,
}

/// Reason for a declaration that is rejected. Found before any data is seen.
#[derive(thiserror::Error)]
#[error("{place}: {message}")]
pub struct SchemaError {
    kind: SchemaErrorKind,
    place: Place,
    message: String,
    #[source]
    source: Option<BoxError>,
}

impl fmt::Debug for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
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

    /// A key that is there twice: otherwise the last value would win and the others be lost silently.
    pub(crate) fn doubled(place: Place, key: &str) -> Self {
        Self::declaration(place, format!("duplicate key `{key}`: remove one"))
    }

    pub(crate) fn configuration(place: Place, message: impl Into<String>) -> Self {
        Self::new(SchemaErrorKind::ReducerConfiguration, place, message)
    }

    pub(crate) fn syntax(line: usize, language: &str, source: impl Into<BoxError>) -> Self {
        let message = format!("invalid {language}: correct the syntax");
        Self {
            source: Some(source.into()),
            ..Self::declaration(Place::line(line), message)
        }
    }

    /// Returns the kind of mistake.
    #[must_use]
    pub fn kind(&self) -> SchemaErrorKind {
        self.kind
    }

    /// Returns OpenArmature's category; `state_declaration_invalid` for mistakes that it has no
    /// category for.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            SchemaErrorKind::Declaration => "state_declaration_invalid",
            SchemaErrorKind::ReducerConfiguration => "reducer_configuration_invalid",
            SchemaErrorKind::ConflictingReducers => "conflicting_reducers",
        }
    }

    /// Returns the place of the mistake.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }
}
