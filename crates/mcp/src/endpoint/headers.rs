//! Headers of requests to servers over pipes.

use http::HeaderMap;
use http::header::ACCEPT;

/// Returns true if a client takes answers of this type.
pub(super) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let all = headers.get_all(ACCEPT).iter();
    all.filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|one| one.split(';').next().unwrap_or_default().trim())
        .any(|one| {
            let group = kind.split('/').next().unwrap_or_default();
            one == "*/*" || one.eq_ignore_ascii_case(kind) || one == format!("{group}/*")
        })
}

/// Returns true for the name of a revision: a date.
pub(super) fn is_revision(name: &[u8]) -> bool {
    name.len() == 10
        && name.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_answers_are_read_as_lists() {
        let mut headers = HeaderMap::new();
        headers.insert(
            ACCEPT,
            "application/json;q=0.9, text/event-stream".parse().unwrap(),
        );
        assert!(accepts(&headers, "application/json") && accepts(&headers, "text/event-stream"));
        headers.insert(ACCEPT, "text/*".parse().unwrap());
        assert!(!accepts(&headers, "application/json") && accepts(&headers, "text/event-stream"));
        assert!(!accepts(&HeaderMap::new(), "application/json"));
    }

    #[test]
    fn a_revision_is_a_date() {
        assert!(is_revision(b"2025-11-25"));
        for wrong in ["", "1.0", "2025-11-2x", "2025/11/25", "2025-11-251"] {
            assert!(!is_revision(wrong.as_bytes()), "{wrong}");
        }
    }
}
