//! Calls of the reader, which the gateway answers itself.

use offcut::agent::Tool as _;
use offcut::{ReadFileTool, ToolCall, ToolReduction};
use serde_json::{Value, json};

use crate::blocks::{from_part, text_block};

/// A call of the reader.
#[derive(Debug)]
pub struct ReaderCall {
    /// The request's id as JSON, and as a key.
    pub(super) id: String,
    pub(super) key: String,
    pub(super) call: ToolCall,
    /// True if the request names a revision without sessions.
    pub(super) is_without_session: bool,
    pub(super) reduction: ToolReduction,
}

impl ReaderCall {
    /// The answer, a whole message.
    pub(super) async fn answer(&self) -> String {
        let (content, is_error) = match self.reduction.read_file_tool().call(&self.call).await {
            Ok(output) => {
                let (parts, _) = output.into_parts().await;
                (parts.into_iter().map(from_part).collect(), false)
            }
            Err(error) => (vec![text_block(&error.to_string())], true),
        };
        let content = content.join(",");
        // Results of revisions without sessions must have it.
        let kind = if self.is_without_session {
            r#","resultType":"complete""#
        } else {
            ""
        };
        let id = &self.id;
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{content}],"isError":{is_error}{kind}}}}}"#
        )
    }
}

/// The reader's entry in the tool list.
pub(super) fn listed(reader: &ReadFileTool) -> Value {
    let definition = reader.definition();
    json!({
        "name": definition.name,
        "description": definition.description,
        "inputSchema": definition.parameters,
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    })
}
