//! Errors of stores.

use std::fmt;

use crate::backend::error_chain::{debug_as_chain, with_source};

/// A store's error. It never contains stored content.
#[derive(thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

debug_as_chain!(BackendError);
with_source!(BackendError);

/// The kind of a store's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing is stored under this key.
    NotFound,
    /// The store denies access, for lack of permissions or credentials, or because it is read-only.
    Denied,
    /// The store has no room left.
    Full,
    /// The store can't be reached or was too slow.
    Unavailable,
    /// The store has no such operation.
    Unsupported,
    /// Anything else.
    Other,
}

impl BackendError {
    /// An error of `kind`. The message must say what failed, and how to fix it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Puts `doing`, the step in which the error was met, before the message.
    #[must_use]
    pub fn while_doing(self, doing: impl fmt::Display) -> Self {
        Self {
            message: format!("{doing}: {}", self.message),
            ..self
        }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns true if the same call may succeed later without anyone fixing anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable)
    }
}
