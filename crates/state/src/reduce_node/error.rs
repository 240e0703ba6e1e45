//! Errors of building and running a `ReduceNode`.

use std::fmt;

use offcut::ErrorChain;
use offcut::agent::ModelError;
use offcut::backend::BackendError;

use crate::reducer::BoxError;

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
    /// The state can't hold the output. If that is known in advance, the model was not called.
    #[error("the state rejected the output under `{key}`")]
    Output {
        /// The output key.
        key: String,
        /// Reason given by the state.
        #[source]
        source: BoxError,
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
            Self::MissingKey { .. } | Self::Output { .. } => false,
            Self::Store { source, .. } => source.is_retryable(),
            Self::Model { source, .. } => source.is_retryable(),
            Self::NoAnswer => true,
        }
    }
}
