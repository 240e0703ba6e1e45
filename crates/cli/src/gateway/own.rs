//! Answers of the server itself.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use offcut::ErrorChain;
use serde_json::json;

use crate::gateway::body::{Body, ReadError, full};
use crate::gateway::forward;
use crate::gateway::secret::Secret;

/// The path of this server itself that `path` spells, without its query; `None` if it is a provider's.
///
/// However it is spelled, and whatever follows: no provider is to see what was meant for this server.
pub(crate) fn path(path: &str) -> Option<String> {
    let segments = forward::segments(path)?;
    let names = segments
        .iter()
        .filter(|name| !name.is_empty() && *name != ".");
    let names: Vec<String> = names.map(|name| name.to_ascii_lowercase()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let is_own = matches!(
        names[..],
        ["healthz" | "readyz" | "metrics" | "page", ..]
            | ["v1", "read" | "compress" | "retrieve" | "tenant", ..]
    );
    is_own.then(|| format!("/{}", names.join("/")))
}

/// The host that a request is for, as its header has it.
pub(crate) fn host(headers: &HeaderMap) -> &str {
    let host = headers.get(header::HOST);
    host.and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// The key that a request bears as `Authorization: Bearer KEY`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then_some(key.trim())
}

/// Returns true if a request bears this key.
pub(crate) fn bears(headers: &HeaderMap, key: Option<&Secret>) -> bool {
    key.zip(bearer(headers))
        .is_some_and(|(key, text)| key.is(text))
}

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Response<Body> {
    typed(status, "application/json", body.to_string())
}

/// An answer of a content type.
pub(crate) fn typed(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<Bytes>,
) -> Response<Body> {
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

/// An answer that takes the place of the provider's.
pub(crate) type Refusal = Box<Response<Body>>;

/// A failure with such an [`error`].
pub(crate) fn refused<T>(status: StatusCode, message: &str) -> Result<T, Refusal> {
    Err(Box::new(error(status, message)))
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        Box::new(not_read(&error))
    }
}

/// The answer to a client whose body was not read.
pub(crate) fn not_read(error: &ReadError) -> Response<Body> {
    let status = match error {
        ReadError::TooSlow => StatusCode::REQUEST_TIMEOUT,
        ReadError::BrokeOff(_) => StatusCode::BAD_REQUEST,
        ReadError::TooMany => StatusCode::SERVICE_UNAVAILABLE,
    };
    let chain = ErrorChain(error).to_string();
    tracing::debug!(error = chain, "a client's body was not read");
    self::error(status, &format!("{chain}: send it again"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_paths_are_own_however_they_are_spelled() {
        for (spelled, own) in [
            ("/v1/read", "/v1/read"),
            ("/v1/read/", "/v1/read"),
            ("/v1/compress?x=1", "/v1/compress"),
            ("//v1//compress", "/v1/compress"),
            ("/v1/compress%2f", "/v1/compress"),
            ("/v1%2Fcompress", "/v1/compress"),
            ("/v1/%63ompress", "/v1/compress"),
            ("/V1/Compress", "/v1/compress"),
            ("/v1/compress;x", "/v1/compress"),
            ("/v1/compress%20", "/v1/compress"),
            ("/v1/compress/x", "/v1/compress/x"),
            ("/v1/retrieve", "/v1/retrieve"),
            ("/v1/retrieve//ab", "/v1/retrieve/ab"),
            ("/page/", "/page"),
            ("/metrics/x", "/metrics/x"),
        ] {
            assert_eq!(path(spelled).as_deref(), Some(own), "{spelled}");
        }
        for other in [
            "/",
            "/v1/readme",
            "/v1/messages",
            // Such paths are refused.
            "/v1/%2563ompress",
            "/openai/v1/read",
            "/v1/x/read",
            "/pages",
        ] {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
