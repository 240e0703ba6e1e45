//! What can go wrong once a reduction is built.

use crate::backend::BackendError;
use crate::content::ToolError;

/// What a store or a handler could not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed, and `on_offload_error` says that this is to fail. Nothing was changed;
    /// trying again is safe.
    #[error(
        "could not store what the call `{}` of `{}` returned: try again, or set `on_offload_error` to keep it",
        .call_id.escape_debug(), .tool.escape_debug()
    )]
    Offload {
        /// The tool.
        tool: String,
        /// The call's id.
        call_id: String,
        /// What the store said.
        #[source]
        source: BackendError,
    },
}

/// What a model is shown where the store's failure ends a call.
impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        Self::new(
            "what the tool returned could not be stored, so it is not shown: call it again later",
        )
        .with_source(error)
    }
}
