//! Answers of the server itself.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::json;

use crate::body::{Body, full};

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Response<Body> {
    typed(status, "application/json", body.to_string())
}

/// An answer of a content type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An error of the server itself, in a form in which the clients of all providers find its message.
pub(crate) fn error(status: StatusCode, message: &str) -> Response<Body> {
    let code = status.as_u16();
    let error =
        json!({"type": "offcut_error", "code": code, "message": format!("offcut: {message}")});
    json(status, &json!({"type": "error", "error": error}))
}

/// The answer to a request for another protocol: its history would not be on the wire.
pub(crate) fn no_upgrade() -> Response<Body> {
    let mut response = error(
        StatusCode::UPGRADE_REQUIRED,
        "a WebSocket does not carry the conversation: use HTTP requests",
    );
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// Returns true if a request asks for another protocol.
pub(crate) fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    let upgrade = headers.get_all(header::UPGRADE).iter();
    upgrade
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.to_ascii_lowercase().contains("websocket"))
}
