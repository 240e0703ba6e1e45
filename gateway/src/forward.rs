//! Heads of requests and replies on their way through.

use http::header::{self, HeaderName};
use http::request::Parts;
use http::{HeaderMap, Request, Uri, Version};

use crate::body::Body;

/// Headers that are about one connection, besides those that `connection` names.
const OF_ONE_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Removes the headers that are about one connection.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_ONE_CONNECTION.iter().chain(&named) {
        // The length says where a body ends, so a client can't have it removed.
        if name != header::CONTENT_LENGTH {
            headers.remove(name);
        }
    }
}

/// The head of a request to a provider. `host` and `expect` are for one server each.
pub(crate) fn head(mut parts: Parts, uri: Uri) -> Parts {
    strip(&mut parts.headers);
    parts.headers.remove(header::HOST);
    parts.headers.remove(header::EXPECT);
    parts.uri = uri;
    parts.version = Version::HTTP_11;
    parts
}

/// A request with a body of known length.
pub(crate) fn with_body(mut parts: Parts, body: Body, length: Option<usize>) -> Request<Body> {
    if let Some(length) = length {
        parts.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Request::from_parts(parts, body)
}

/// Returns true if no segment of a path leads out of the provider's base path.
pub(crate) fn is_plain_path(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.starts_with('/')
        && !path.contains('\\')
        && path.split('/').all(|segment| {
            let decoded = segment.to_ascii_lowercase().replace("%2e", ".");
            decoded != "." && decoded != ".."
        })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn headers_of_one_connection_stay_on_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own, content-length"),
            ("x-own", "1"),
            ("te", "trailers"),
            ("content-length", "3"),
            ("authorization", "Bearer x"),
            ("anthropic-beta", "a,b"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        strip(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["anthropic-beta", "authorization", "content-length"]);
    }

    #[test]
    fn paths_that_climb_are_refused() {
        for path in ["/a/../b", "/a/%2E%2e/b", "/./a", "/a/.%2e", "*", "/a\\b"] {
            assert!(!is_plain_path(path), "{path}");
        }
        for path in ["/", "/v1/x?y=../z", "/a/...", "/a.b"] {
            assert!(is_plain_path(path), "{path}");
        }
    }
}
