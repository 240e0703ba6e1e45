//! The reader as a tool of an MCP server.

use offcut::agent::Tool as _;
use offcut::{ReadFileTool, ToolCall};
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};

use crate::result::from_part;

/// The reader's entry in the tool list.
pub(crate) fn listed(reader: &ReadFileTool) -> Tool {
    let definition = reader.definition();
    let schema = definition
        .parameters
        .as_object()
        .cloned()
        .unwrap_or_default();
    Tool::new(definition.name, definition.description, schema)
        .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

/// Answers a call of the reader.
pub(crate) async fn answer(reader: &ReadFileTool, call: &ToolCall) -> CallToolResult {
    match reader.call(call).await {
        Ok(output) => {
            let (parts, _) = output.into_parts().await;
            CallToolResult::success(parts.into_iter().map(from_part).collect())
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    }
}
