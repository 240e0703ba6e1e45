//! What can go wrong with a `ReduceNode`, before and while it runs.

use offcut::agent::ModelError;
use offcut::backend::BackendError;

use crate::reducer::BoxError;

/// Why a node can't be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReduceNodeBuildError {
    /// The prompt template can't be read.
    #[error("`prompt_template` has at byte {at} {problem}")]
    Template {
        /// Where, in bytes from 0.
        at: usize,
        /// What is wrong, and what to write.
        problem: &'static str,
    },
    /// A key has no name.
    #[error("`{option}` names an empty key: name a key of the state")]
    EmptyKey {
        /// `input_keys` or `output_key`.
        option: &'static str,
    },
    /// The model may never be called.
    #[error("`max_model_calls` is 0: the node needs at least 1")]
    NoModelCalls,
}

/// Why a node did not run. The state is as it was, and trying again is safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReduceNodeError {
    /// The template names a key that the state lacks. The model was not called.
    #[error(
        "the prompt template names `{key}`, which the state does not have: set it first, or write `{{{{` for a brace"
    )]
    MissingKey {
        /// The key.
        key: String,
    },
    /// The state can't hold the output. If that is known before, the model was not called.
    #[error("the state does not take the output under `{key}`")]
    Output {
        /// The output's key.
        key: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// An input could not be stored. The model was not called.
    #[error(
        "the input `{key}` could not be stored: try again, or run the node without a reduction to let inputs go"
    )]
    Store {
        /// The input's key.
        key: String,
        /// What the store said.
        #[source]
        source: BackendError,
    },
    /// The model failed.
    #[error("the model failed after {model_calls} calls")]
    Model {
        /// How often it was called; more than once only after rate limits.
        model_calls: usize,
        /// What it said last.
        #[source]
        source: ModelError,
    },
    /// The model answered nothing, or only thought.
    #[error("the model gave no answer: try again, or give it more output tokens")]
    NoAnswer,
}

impl ReduceNodeError {
    /// Whether the same call may succeed later without anybody mending anything.
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
