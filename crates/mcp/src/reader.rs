//! The reader as a tool of an MCP server.

use offcut::agent::Tool as _;
use offcut::{ReadFileTool, ToolCall};
use serde_json::{Value, json};

use crate::blocks::{from_part, text_block};

/// The reader's entry in a list of tools.
#[must_use]
pub fn listed_reader(reader: &ReadFileTool) -> Value {
    let definition = reader.definition();
    json!({
        "name": definition.name,
        "description": definition.description,
        "inputSchema": definition.parameters,
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

/// Answers a call of the reader with a `CallToolResult`.
pub async fn read_back(reader: &ReadFileTool, call: &ToolCall) -> Value {
    match reader.call(call).await {
        Ok(output) => {
            let (parts, _) = output.into_parts().await;
            let content: Vec<Value> = parts.into_iter().map(from_part).collect();
            json!({"content": content, "isError": false})
        }
        Err(error) => json!({"content": [text_block(&error.to_string())], "isError": true}),
    }
}
