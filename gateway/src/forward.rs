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
    use super::*;

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
