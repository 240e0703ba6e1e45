//! `/v1/read`: reads stored content back, page by page, for loops that have the reader as a tool of
//! their own.

use http::{Response, StatusCode};
use offcut::agent::Tool;
use offcut::format::{LoopFormat, WireFormat};
use offcut::{Part, ToolOutput};
use offcut::{ToolCall, ToolReduction};
use serde_json::{Map, Value, json};

use crate::gateway::body::Body;
use crate::gateway::own;
use crate::gateway::reducer::ConversationReducer;

/// The answer to a call of the reader of `reduction`, whose arguments are the request's body. A mistake
/// of the model is in the answer, marked as an error.
pub(crate) async fn answer(reduction: &ToolReduction, arguments: &str) -> Response<Body> {
    let reader = reduction.read_file_tool();
    let call = ToolCall::new("", reader.definition().name, arguments);
    let (text, is_error) = match reader.call(&call).await {
        Ok(page) => (text_of(page).await, false),
        Err(error) => (error.to_string(), true),
    };
    own::json(StatusCode::OK, &json!({"text": text, "is_error": is_error}))
}

async fn text_of(page: ToolOutput) -> String {
    let (parts, _) = page.into_parts().await;
    let texts = parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Json(value) => value.to_string(),
        _ => "(this is not text)".to_owned(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The reader's definition for the tools of a request, by protocol.
pub(crate) fn definitions(reducer: &ConversationReducer) -> Response<Body> {
    let reader = reducer.any().read_file_tool();
    let definitions: Map<String, Value> = WireFormat::ALL
        .into_iter()
        .map(|format| (format.name().to_owned(), format.tool(&reader)))
        .collect();
    own::json(StatusCode::OK, &definitions.into())
}
