//! The reader as a tool and as a resource of an MCP server, in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use offcut::Part;
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

/// The fields of the result of `resources/read` for `uri`: what the reader answers to `call`.
///
/// # Errors
///
/// The reader's, as it tells a model.
pub(crate) async fn resource(
    reader: &ReadFileTool,
    call: &ToolCall,
    uri: &str,
) -> Result<String, String> {
    let output = reader.call(call).await.map_err(|error| error.to_string())?;
    let (parts, _) = output.into_parts().await;
    let contents = parts.into_iter().map(|part| match part {
        Part::Media { mime, data } => {
            json!({"uri": uri, "mimeType": mime, "blob": STANDARD.encode(data)})
        }
        Part::Text(text) => json!({"uri": uri, "mimeType": "text/plain", "text": text}),
        part => json!({"uri": uri, "mimeType": "text/plain", "text": from_part(part)}),
    });
    Ok(format!(r#""contents":{}"#, Value::from_iter(contents)))
}
