//! Headers on their way through a server.

use http::header::{self, HeaderMap, HeaderName};

/// Headers that are about one connection, besides those that `connection` names.
const OF_ONE_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Removes the headers that are about one connection, as RFC 9110, section 7.6.1 asks of
/// intermediaries. The length of a body stays, whatever `connection` names, unless
/// `transfer-encoding` says otherwise, which counts alone (RFC 9112, section 6.3).
pub fn strip(headers: &mut HeaderMap) {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn headers_of_one_connection_stay_on_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own, content-length"),
            ("connection", "x-other"),
            ("x-own", "1"),
            ("x-other", "1"),
            ("te", "trailers"),
            ("proxy-authenticate", "Basic"),
            ("proxy-connection", "keep-alive"),
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
    fn a_body_in_chunks_has_no_other_length() {
        let mut headers = HeaderMap::new();
        headers.append("content-length", HeaderValue::from_static("12 OK"));
        headers.append("transfer-encoding", HeaderValue::from_static("chunked"));
        strip(&mut headers);
        assert!(headers.is_empty());
    }
}
