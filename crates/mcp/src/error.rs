//! Errors of a reduction.

use std::fmt;

use offcut::OffloadError;

/// A result can't be shortened. It should then be passed on unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReduceError {
    /// The result is not an object, has a key twice where that matters, or a text that is not valid
    /// Unicode, so that what it means is not certain.
    Ambiguous,
    /// The store failed, and `on_offload_error` is `Fail`.
    Offload(OffloadError),
}

impl fmt::Display for ReduceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous => f.write_str(
                "the result is not plain JSON (an object without duplicate keys, with valid Unicode), so it stays as it is",
            ),
            Self::Offload(_) => f.write_str("the result could not be stored"),
        }
    }
}

impl std::error::Error for ReduceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Ambiguous => None,
            Self::Offload(error) => Some(error),
        }
    }
}

impl From<OffloadError> for ReduceError {
    fn from(error: OffloadError) -> Self {
        Self::Offload(error)
    }
}
