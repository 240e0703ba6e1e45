//! What can go wrong once a reduction is built.

use crate::backend::BackendError;
use crate::content::ToolError;

/// What a store or a handler could not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store failed, and `on_offload_error` says that this is to fail. Nothing was changed; trying again is safe.
    #[error(
        "could not store what the call `{call_id}` of `{tool}` returned: try again, or set `on_offload_error` to keep it"
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
        Self::new(error.to_string()).with_source(error)
    }
}
