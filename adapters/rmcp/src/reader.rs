//! The reader as a tool of an MCP server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use offcut::agent::Tool as _;
use offcut::{Part, ReadFileTool, ToolCall};
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};

/// How the reader is listed.
pub(crate) fn listed(reader: &ReadFileTool) -> Tool {
    let definition = reader.definition();
    let schema = definition.parameters.as_object().cloned().unwrap_or_default();
    Tool::new(definition.name, definition.description, schema)
        .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

/// Answers a call of the reader.
pub(crate) async fn read(reader: &ReadFileTool, call: &ToolCall) -> CallToolResult {
    match reader.call(call).await {
        Ok(output) => {
            let (parts, _) = output.into_parts().await;
            CallToolResult::success(parts.into_iter().map(block).collect())
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    }
}

fn block(part: Part) -> ContentBlock {
    match part {
        Part::Text(text) => ContentBlock::text(text),
        Part::Media { mime, data } if mime.starts_with("audio/") => ContentBlock::audio(STANDARD.encode(data), mime),
        Part::Media { mime, data } => ContentBlock::image(STANDARD.encode(data), mime),
        Part::Link { url, .. } => ContentBlock::text(url),
        Part::Json(value) | Part::Opaque(value) => ContentBlock::text(value.to_string()),
    }
}
