//! Requests that the gateway answers itself.

use offcut::json::{Node, View as _};
use offcut::{ToolCall, ToolReduction};
use serde_json::json;

use super::message::{REVISION, key};
use super::resources;
use crate::answer;

/// JSON-RPC's code for what is not there, as revisions with sessions have it.
const NO_RESOURCE: i32 = -32002;
/// The same in revisions without.
const INVALID_PARAMS: i32 = -32602;

/// A call of the reader, or a request for the stored results as resources.
#[derive(Debug)]
pub struct ReaderCall {
    id: String,
    key: String,
    asked: Asked,
    /// True if the request names a revision without sessions.
    is_without_session: bool,
    reduction: ToolReduction,
}

/// The question.
#[derive(Debug)]
pub(super) enum Asked {
    /// A call of the reader as a tool.
    Tool(ToolCall),
    /// `resources/read`, and the call of the reader that it stands for.
    Resource { uri: String, call: ToolCall },
    /// A list in this field that has nothing in it.
    EmptyList(&'static str),
}

impl Asked {
    /// The question of a request about resources: about a stored one, or for a list that the server
    /// does not have. `None` if it is the server's. `reader` is the reader's name.
    pub(super) fn about_resources(
        method: &str,
        params: Option<Node<'_>>,
        reader: &str,
        lacks_resources: bool,
    ) -> Option<Self> {
        if method == "resources/read" {
            let uri = params?.text("uri").to_owned();
            let call = ToolCall::new("", reader, resources::arguments(&uri)?);
            return Some(Self::Resource { uri, call });
        }
        let list = resources::list_of(method).filter(|_| lacks_resources)?;
        Some(Self::EmptyList(list))
    }
}

impl ReaderCall {
    pub(super) fn new(
        id: Node<'_>,
        meta: Option<Node<'_>>,
        asked: Asked,
        reduction: ToolReduction,
    ) -> Self {
        Self {
            id: id.json().to_string(),
            key: key(id),
            asked,
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
        let reader = self.reduction.read_file_tool();
        let answered = match &self.asked {
            Asked::Tool(call) => Ok(answer::answer(&reader, call).await),
            Asked::Resource { uri, call } => answer::resource(&reader, call, uri).await,
            Asked::EmptyList(field) => Ok(format!(r#""{field}":[]"#)),
        };
        let id = &self.id;
        match answered {
            Ok(fields) => {
                let told = self.told();
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{fields}{told}}}}}"#)
            }
            Err(message) => {
                let code = if self.is_without_session {
                    INVALID_PARAMS
                } else {
                    NO_RESOURCE
                };
                let error = json!({"code": code, "message": message});
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
            }
        }
    }

    /// The fields that results of revisions without sessions must have.
    fn told(&self) -> &'static str {
        match &self.asked {
            _ if !self.is_without_session => "",
            Asked::Tool(_) => r#","resultType":"complete""#,
            _ => r#","resultType":"complete","ttlMs":0,"cacheScope":"private""#,
        }
    }
}
