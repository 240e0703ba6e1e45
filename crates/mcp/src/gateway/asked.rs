//! Calls of the reader, which the gateway answers itself.

use offcut::json::{Node, View as _};
use offcut::{ToolCall, ToolReduction};

use super::message::{REVISION, key};
use crate::answer;

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
        let fields = answer::answer(&self.reduction.read_file_tool(), &self.call).await;
        // Results of revisions without sessions must have it.
        let kind = if self.is_without_session {
            r#","resultType":"complete""#
        } else {
            ""
        };
        let id = &self.id;
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{fields}{kind}}}}}"#)
    }
}
