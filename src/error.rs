//! The error of a reduction that is in use.

use crate::backend::BackendError;
use crate::content::ToolError;

/// A result that could not be stored, where `on_offload_error` says that this is to fail.
///
/// Nothing was changed; trying again is safe.
#[derive(Debug, thiserror::Error)]
#[error(
    "could not store what the call `{}` of `{}` returned: try again, or set `on_offload_error` to keep it",
    .call_id.escape_debug(), .tool.escape_debug()
)]
#[non_exhaustive]
pub struct OffloadError {
    /// The tool's name.
    pub tool: String,
    /// The call's id.
    pub call_id: String,
    /// The store's error.
    pub source: BackendError,
}

impl OffloadError {
    /// The error of a store that failed for the result of the call `call_id` of `tool`.
    pub fn new(tool: impl Into<String>, call_id: impl Into<String>, source: BackendError) -> Self {
        Self {
            tool: tool.into(),
            call_id: call_id.into(),
            source,
        }
    }
}

/// The text that a model is shown where the store's failure ends a call.
impl From<OffloadError> for ToolError {
    fn from(error: OffloadError) -> Self {
        Self::new(
            "what the tool returned could not be stored, so it is not shown: call it again later",
        )
        .with_source(error)
    }
}
