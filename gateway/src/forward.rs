//! Heads of requests and replies on their way through.

use http::header;
use http::request::Parts;
use http::{Uri, Version};

/// The head of a request to a provider. `host` and `expect` are for one server each.
pub(crate) fn head(mut parts: Parts, uri: Uri) -> Parts {
    offcut_http::strip(&mut parts.headers);
    parts.headers.remove(header::HOST);
    parts.headers.remove(header::EXPECT);
    parts.uri = uri;
    parts.version = Version::HTTP_11;
    parts
}

/// Number of times that a chain of servers may decode a path.
const DECODED: usize = 4;

/// The segments of a path as a server may understand them that decodes more than it should; `None` if the
/// path can't be decoded, so that nobody knows how it will be understood.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let path = path.split('?').next().unwrap_or_default();
    let mut decoded = decode(path.as_bytes())?;
    for _ in 1..DECODED {
        match decode(decoded.as_bytes()) {
            Some(again) => decoded = again,
            None => break,
        }
    }
    let segments = decoded.split(['/', '\\']);
    // Some servers take what follows a `;` as parameters of the segment.
    let name = |segment: &str| segment.split(';').next().map(|name| name.trim().to_owned());
    segments.map(name).collect()
}

/// Decodes what is percent-encoded; `None` if it is not encoded rightly, or is not text.
fn decode(path: &[u8]) -> Option<String> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path.iter();
    while let Some(&byte) = rest.next() {
        decoded.push(if byte == b'%' {
            let mut digit = || char::from(*rest.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()?
        } else {
            byte
        });
    }
    let is_text = !decoded.iter().any(u8::is_ascii_control);
    // Longer spellings of ASCII, such as `%c0%ae`, are not UTF-8.
    String::from_utf8(decoded).ok().filter(|_| is_text)
}

/// Returns true if no segment of a path leads out of the provider's base path, however it is decoded.
pub(crate) fn is_plain_path(path: &str) -> bool {
    path.starts_with('/')
        && !path.split('?').next().unwrap_or_default().contains('\\')
        && segments(path).is_some_and(|segments| {
            let mut segments = segments.iter();
            segments.all(|segment| segment != "." && segment != "..")
        })
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
