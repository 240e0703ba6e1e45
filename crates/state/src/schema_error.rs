//! Errors of declarations.

use std::fmt;

use offcut::ErrorChain;

use crate::reducer::BoxError;

/// OpenArmature's category of a reducer whose parameters are invalid.
pub(crate) const CONFIGURATION: &str = "reducer_configuration_invalid";
/// OpenArmature's category of a field with two reducers.
pub(crate) const CONFLICT: &str = "conflicting_reducers";
/// Our own category, of mistakes that OpenArmature has none for.
pub(crate) const DECLARATION: &str = "state_declaration_invalid";

/// Reason for a declaration that is rejected, and its place: a line, or a path such as
/// `fields[2].reducer.bounded_append.max_len`. Found before any data is seen.
#[derive(thiserror::Error)]
#[error("{place}: {message}")]
pub struct SchemaError {
    code: &'static str,
    place: String,
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
    pub(crate) fn new(
        code: &'static str,
        place: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            place: place.into(),
            message: message.into(),
            source: None,
        }
    }

    /// A key that is there twice: otherwise the last value would win and the others be lost silently.
    pub(crate) fn doubled(line: usize, key: &str) -> Self {
        let message = format!("duplicate key `{key}`: remove one");
        Self::new(DECLARATION, format!("line {line}"), message)
    }

    pub(crate) fn syntax(line: usize, language: &str, source: impl Into<BoxError>) -> Self {
        let message = format!("invalid {language}: correct the syntax");
        Self {
            source: Some(source.into()),
            ..Self::new(DECLARATION, format!("line {line}"), message)
        }
    }

    /// Returns OpenArmature's category: `reducer_configuration_invalid` or `conflicting_reducers`; for mistakes that it
    /// has no category for, `state_declaration_invalid`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }
}
