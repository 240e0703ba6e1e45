//! Heads of requests and replies on their way through.

use http::header;
use http::request::Parts;
use http::{HeaderMap, Uri, Version};

/// The head of a request to a provider. `host` and `expect` are for one server each.
pub(crate) fn head(mut parts: Parts, uri: Uri) -> Parts {
    offcut_mcp::http::strip(&mut parts.headers);
    parts.headers.remove(header::HOST);
    parts.headers.remove(header::EXPECT);
    parts.uri = uri;
    parts.version = Version::HTTP_11;
    parts
}

/// The words that a header lists.
pub(crate) fn words<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h [u8]> {
    let values = headers.get_all(name).into_iter();
    let words = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    words.map(<[u8]>::trim_ascii)
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

#[cfg(test)]
mod tests {
    use super::*;

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
