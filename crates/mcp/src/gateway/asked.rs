//! Calls of the reader, which the gateway answers itself.

use offcut::agent::Tool as _;
use offcut::json::{Node, View as _};
use offcut::{ReadFileTool, ToolCall, ToolReduction};
use serde_json::{Value, json};

use super::message::{REVISION, key};
use crate::blocks::{from_part, text_block};

/// A call of the reader.
#[derive(Debug)]
pub struct ReaderCall {
    id: String,
    key: String,
    call: ToolCall,
    /// True if the request names a revision without sessions.
    is_without_session: bool,
    reduction: ToolReduction,
}

impl ReaderCall {
    pub(super) fn new(
        id: Node<'_>,
        meta: Option<Node<'_>>,
        call: ToolCall,
        reduction: ToolReduction,
    ) -> Self {
        Self {
            id: id.json().to_string(),
            key: key(id),
            call,
            is_without_session: meta.is_some_and(|meta| meta.has(REVISION)),
            reduction,
        }
    }

    /// The key of the request's id.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

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
