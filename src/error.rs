//! The error of a reduction in use.

use crate::backend::{BackendError, debug_as_chain};
use crate::content::ToolError;

/// A result could not be stored, and `on_offload_error` is set to fail.
///
/// Nothing was changed, so trying again is safe.
#[derive(thiserror::Error)]
#[error(
    "could not store the result of the call `{}` of `{}`: try again, or set `on_offload_error` to keep it",
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

debug_as_chain!(OffloadError);

impl OffloadError {
    /// The error for a store that failed on the result of the call `call_id` of `tool`.
    pub fn new(tool: impl Into<String>, call_id: impl Into<String>, source: BackendError) -> Self {
        Self {
            tool: tool.into(),
            call_id: call_id.into(),
            source,
        }
    }
}

/// Text for the model when a failed store ends a call.
impl From<OffloadError> for ToolError {
    fn from(error: OffloadError) -> Self {
        Self::new("the result could not be stored, so it is not shown: call the tool again later")
            .with_source(error)
    }
}
