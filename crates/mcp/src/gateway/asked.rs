//! Calls of the reader, which the gateway answers itself.

use offcut::{ToolCall, ToolReduction};

use crate::reader::read_back;

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
        let mut result = read_back(&self.reduction.read_file_tool(), &self.call).await;
        // Results of revisions without sessions must have it.
        if self.is_without_session {
            result["resultType"] = "complete".into();
        }
        let id = &self.id;
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
    }
}
