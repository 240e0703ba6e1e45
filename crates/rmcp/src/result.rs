//! Reduction of a tool's result.

use offcut::{ToolCall, ToolReduction};
use offcut_mcp::{OutputSchema, ReduceError};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;

/// Stores and replaces the parts of `result` over the limit. Within the limit it is unchanged, and so is
/// a result whose meaning is not certain as JSON.
pub(crate) async fn reduce(
    reduction: &ToolReduction,
    call: &ToolCall,
    result: CallToolResult,
    schema: &OutputSchema,
) -> Result<CallToolResult, ErrorData> {
    let Ok(spelled) = serde_json::to_string(&result) else {
        return Ok(result);
    };
    match offcut_mcp::reduce(reduction, call, spelled, schema).await {
        Ok(Some(new)) => serde_json::from_str(&new).map_err(internal),
        Ok(None) | Err(ReduceError::Ambiguous) => Ok(result),
        Err(ReduceError::Offload(error)) => Err(internal(error)),
        Err(error) => Err(internal(error)),
    }
}

pub(crate) fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
