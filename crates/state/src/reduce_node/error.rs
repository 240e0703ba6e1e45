//! Errors of running a `ReduceNode`.

use std::fmt;

use offcut::ErrorChain;
use offcut::agent::ModelError;
use offcut::backend::BackendError;

/// Reason for a node that did not run. The state is unchanged, and trying again is safe.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ReduceNodeError {
    /// The template names a key that the state lacks. The model was not called.
    #[error(
        "the prompt template names `{key}`, which the state lacks: set it first, or write `{{{{` for a brace"
    )]
    MissingKey {
        /// The key.
        key: String,
    },
    /// The output would replace a value that looks like a hint, but is not one of the reduction's. The
    /// model was not called.
    #[error(
        "the value under `{key}` looks like a hint that this reduction did not write, and would be lost: give another \
         output key"
    )]
    OutputTaken {
        /// The output key.
        key: String,
    },
    /// An input could not be stored. The model was not called.
    #[error(
        "the input `{key}` could not be stored: try again, or run the node without a reduction to discard the inputs"
    )]
    Store {
        /// The input key.
        key: String,
        /// The store's error.
        #[source]
        source: BackendError,
    },
    /// The model failed.
    #[error("the model failed; calls made: {model_calls}")]
    Model {
        /// Number of calls to the model; more than one only after rate limits.
        model_calls: usize,
        /// Error of the last call.
        #[source]
        source: ModelError,
    },
    /// The model returned nothing, or only a thought.
    #[error("the model returned no answer: try again, or allow it more output tokens")]
    NoAnswer,
}

impl fmt::Debug for ReduceNodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
}

impl ReduceNodeError {
    /// Returns whether the same call may succeed later without any change.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::MissingKey { .. } | Self::OutputTaken { .. } => false,
            Self::Store { source, .. } => source.is_retryable(),
            Self::Model { source, .. } => source.is_retryable(),
            Self::NoAnswer => true,
        }
    }
}
