//! Reduction of a tool's result.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use offcut::{Part, ToolCall, ToolReduction};
use offcut_mcp::{OutputSchema, ReduceError};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, Resource};

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

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Converts `part` to a separate block.
pub(crate) fn from_part(part: Part) -> ContentBlock {
    match part {
        Part::Text(text) => ContentBlock::text(text),
        Part::Media { mime, data } if mime.starts_with("audio/") => {
            ContentBlock::audio(STANDARD.encode(data), mime)
        }
        Part::Media { mime, data } => ContentBlock::image(STANDARD.encode(data), mime),
        Part::Link { url, .. } => ContentBlock::resource_link(Resource::new(url.clone(), url)),
        Part::Json(value) => ContentBlock::text(value.to_string()),
        Part::Opaque(value) => serde_json::from_value(value.clone())
            .unwrap_or_else(|_| ContentBlock::text(value.to_string())),
    }
}
