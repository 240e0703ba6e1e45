//! The reader as a tool of an MCP server, in JSON.

use offcut::agent::Tool as _;
use offcut::{ReadFileTool, ToolCall};
use serde_json::{Value, json};

use crate::blocks::{from_part, text_block};

/// The reader's entry in the tool list.
pub(crate) fn listed(reader: &ReadFileTool) -> Value {
    let definition = reader.definition();
    json!({
        "name": definition.name,
        "description": definition.description,
        "inputSchema": definition.parameters,
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}

/// The result of a call of the reader.
pub(crate) async fn answer(reader: &ReadFileTool, call: &ToolCall) -> String {
    let (content, is_error) = match reader.call(call).await {
        Ok(output) => {
            let (parts, _) = output.into_parts().await;
            (parts.into_iter().map(from_part).collect(), false)
        }
        Err(error) => (vec![text_block(&error.to_string())], true),
    };
    format!(r#""content":[{}],"isError":{is_error}"#, content.join(","))
}
