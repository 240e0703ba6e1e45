//! The server's own paths, and its answers.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use offcut::ErrorChain;
use serde_json::json;

use crate::gateway::body::{Body, ReadError, full};
use crate::gateway::secret::Secret;

/// The path of this server itself that `path` spells, without its query; `None` if it is a provider's.
///
/// However it is spelled, and whatever follows: no provider is to see what was meant for this server.
pub(crate) fn path(path: &str) -> Option<String> {
    let segments = segments(path)?;
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

/// The segments of a path, decoded; `None` if nobody knows how it will be understood, because it is encoded wrongly or
/// twice.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let path = decode(path.split(['?', '#']).next().unwrap_or_default())?;
    if percent_encoding::percent_decode_str(&path).ne(path.bytes()) {
        return None;
    }
    // Some take the rest for a query, or for a parameter.
    let name = |segment: &str| {
        segment
            .split([';', '?', '#'])
            .next()
            .map(|name| name.trim().to_owned())
    };
    path.split(['/', '\\']).map(name).collect()
}

/// Decodes what is percent-encoded; `None` if it is not encoded rightly, or is not text.
fn decode(path: &str) -> Option<String> {
    let mut escaped = path.split('%').skip(1).map(str::as_bytes);
    let is_encoded = escaped.all(
        |rest| matches!(rest, [one, two, ..] if one.is_ascii_hexdigit() && two.is_ascii_hexdigit()),
    );
    // Longer spellings of ASCII, such as `%c0%ae`, are not UTF-8.
    let text = percent_encoding::percent_decode_str(path)
        .decode_utf8()
        .ok()?;
    let is_text = !text.bytes().any(|byte| byte.is_ascii_control());
    (is_encoded && is_text).then(|| text.into_owned())
}

/// Returns true if no segment of a path leads out of the provider's base path, however it is decoded.
pub(crate) fn is_plain_path(path: &str) -> bool {
    path.starts_with('/')
        && !path.split('?').next().unwrap_or_default().contains('\\')
        && segments(path)
            .is_some_and(|all| all.iter().all(|segment| segment != "." && segment != ".."))
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

rows! {
    /// A request that this server answers with an error: the status, and what is wrong and to do.
    Denial: (StatusCode, &'static str) {
        Proxy => (StatusCode::METHOD_NOT_ALLOWED,
            "this server is not a proxy for other hosts: set its address as the base URL"),
        Path => (StatusCode::BAD_REQUEST,
            "the path must begin with `/`, be encoded as URLs are, and must not hold `..`, however it is spelled"),
        Hosts => (StatusCode::BAD_REQUEST, "the request has more than one host"),
        OtherHost => (StatusCode::MISDIRECTED_REQUEST,
            "this is for the server's own machine: use 127.0.0.1, or add the name to `serve.hosts`"),
        FromAfar => (StatusCode::MISDIRECTED_REQUEST,
            "a proxy passes on what other machines send: set `serve.expose = true`, which needs `serve.tenant_key`"),
        WebPage => (StatusCode::FORBIDDEN, "web pages have no access to this server"),
        TransferCoding => (StatusCode::NOT_IMPLEMENTED,
            "the only transfer encoding is chunked: compress with content-encoding"),
        OwnKey => (StatusCode::NOT_FOUND,
            "this key is for paths of this server alone, and no provider is to see it"),
        NoUpstream => (StatusCode::NOT_FOUND,
            "nothing tells which provider is meant: put the name of an upstream before the path, such as /openai/v1"),
        OthersKey => (StatusCode::BAD_REQUEST,
            "the request's key is for another provider than `serve.default_upstream` says, or nothing tells whose it is: put the name of the one that is meant before the path, such as /anthropic"),
        NoUrl => (StatusCode::BAD_REQUEST, "the path is not one that a URL can hold"),
        NoPath => (StatusCode::NOT_FOUND,
            "this server has no such path; a provider's needs the name of its upstream before it"),
        UseGet => (StatusCode::METHOD_NOT_ALLOWED, "use GET"),
        UsePost => (StatusCode::METHOD_NOT_ALLOWED, "use POST"),
        MetricsElsewhere => (StatusCode::NOT_FOUND,
            "the metrics are at the address of `serve.metrics_listen`"),
        MetricsOnly => (StatusCode::NOT_FOUND, "this address has /metrics, /healthz and /readyz"),
        NotReady => (StatusCode::SERVICE_UNAVAILABLE, "a store does not answer, or takes nothing"),
        NoTenant => (StatusCode::UNAUTHORIZED,
            "send what tells tenants apart: the key, or the header that `serve.tenant_header` names"),
        NoKey => (StatusCode::UNAUTHORIZED,
            "send the key that the conversation was sent with, or the header that `serve.tenant_header` names, since it tells whose content may be read; where there is none, the token of this server's page as `Authorization: Bearer TOKEN`"),
        LongCall => (StatusCode::PAYLOAD_TOO_LARGE,
            "the body must be the arguments of one call, as JSON of up to 64 KiB"),
        NotJson => (StatusCode::BAD_REQUEST, "the body must be JSON"),
        NoPlug => (StatusCode::NOT_FOUND, "the settings have no `serve.compress_keys`"),
        PlugKey => (StatusCode::UNAUTHORIZED,
            "send one of `serve.compress_keys` as `Authorization: Bearer KEY`"),
        LongBody => (StatusCode::PAYLOAD_TOO_LARGE,
            "the body is over `serve.max_body`, or would take too much memory"),
        NotMessages => (StatusCode::BAD_REQUEST,
            "the body must be `{\"messages\": […]}`, in the format of chat completions"),
        NotReduced => (StatusCode::SERVICE_UNAVAILABLE,
            "the messages were not reduced in time: try again"),
        NoHash => (StatusCode::NOT_FOUND, "nothing of this hash is stored for this credential"),
        NotRead => (StatusCode::BAD_GATEWAY,
            "the store failed: try again, and see the server's log"),
        NoToken => (StatusCode::UNAUTHORIZED,
            "open the address that the server has printed at its start: it ends in the token"),
        NoConversation => (StatusCode::NOT_FOUND, "no such conversation is held"),
    }
}

impl Denial {
    pub(crate) fn answer(self) -> Response<Body> {
        let (status, message) = self.row();
        error(status, message)
    }
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        Box::new(denial.answer())
    }
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

    #[test]
    fn paths_that_climb_are_refused() {
        for path in [
            "/a/../b",
            "/a/%2E%2e/b",
            "/./a",
            "/a/.%2e",
            "*",
            "/a\\b",
            "/lab/..%2fadmin",
            "/lab/x%2F..%2f..%2Fadmin",
            "/lab/..%5cadmin",
            "/lab/..;/admin",
            "/lab/..;x=1/admin",
            "/lab/%2e%2e%3b/admin",
            "/lab/%c0%ae%c0%ae/admin",
            "/lab/%e0%80%ae%2e/admin",
            "/lab/%252e%252e%252fadmin",
            "/lab/..%00/admin",
            "/lab/..%20/admin",
            "/lab/%u002e%u002e/admin",
            "/lab/%",
            "/lab/%252e%252e%252fadmin/100%25",
            "/lab/%252e%252e/%25zz/%25ff",
            "/v1/x/%25ff%2500",
            &format!("/lab/%{}2e%2e/admin", "25".repeat(9)),
            &format!("/lab/%{}41", "25".repeat(20)),
        ] {
            assert!(!is_plain_path(path), "{path}");
        }
        for path in [
            "/",
            "/v1/x?y=../z",
            "/a/...",
            "/a.b",
            "/v1/models/org%2Fmodel%3Alatest",
            "/v1/files/a%20b%C3%A4",
            "/v1/x/100%25",
            "/v1/x;y=1",
        ] {
            assert!(is_plain_path(path), "{path}");
        }
    }
}
