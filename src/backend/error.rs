//! Errors of stores, and errors with their causes.

use std::error::Error;
use std::fmt;

/// An error and its causes, formatted in one line.
///
/// `Debug` of this crate's errors shows the same, so that a `main` that returns one prints a
/// message. `Display` of an error leaves out its causes.
///
/// ```
/// use offcut::ErrorChain;
/// use offcut::backend::{BackendError, ErrorKind};
///
/// let cause = std::io::Error::other("the disk is gone");
/// let error = BackendError::new(ErrorKind::Other, "reading trunc/a failed").with_source(cause);
/// assert_eq!(error.to_string(), "reading trunc/a failed");
/// assert_eq!(ErrorChain(&error).to_string(), "reading trunc/a failed: the disk is gone");
/// assert_eq!(format!("{error:?}"), "reading trunc/a failed: the disk is gone");
/// ```
pub struct ErrorChain<'e>(pub &'e dyn Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            // Errors of other crates may repeat their cause.
            if !said.contains(&text) {
                said = format!("{said}: {text}");
            }
            next = cause.source();
        }
        f.write_str(&said)
    }
}

impl fmt::Debug for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Implements `Debug` of errors, which shows their causes.
macro_rules! debug_as_chain {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&$crate::backend::ErrorChain(self), f)
            }
        }
    };
}
pub(crate) use debug_as_chain;

/// Implements `with_source` of errors with a `source` field.
macro_rules! with_source {
    ($error:ty) => {
        impl $error {
            /// Adds the cause of the error.
            #[must_use]
            pub fn with_source(
                mut self,
                source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
            ) -> Self {
                self.source = Some(source.into());
                self
            }
        }
    };
}
pub(crate) use with_source;

/// A store's error. It never contains stored content.
#[derive(thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
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
