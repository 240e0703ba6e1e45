//! Headers of requests to servers over pipes.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::remote::meaning::{METHOD, Meaning, NAME};
use crate::remote::session::REVISION_HEADER;

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

const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const HEADER_MISMATCH: i32 = -32020;

/// The reason for which a message of a revision without sessions is refused: a status, a code and words.
pub(super) fn problem(headers: &HeaderMap, meaning: &Meaning) -> Option<(StatusCode, i32, String)> {
    if meaning.request_id().is_some() && meaning.revision.is_none() {
        let text = "each request must name its revision under _meta, as its header does";
        return Some((StatusCode::BAD_REQUEST, INVALID_PARAMS, text.to_owned()));
    }
    // The server that all clients share would begin a session.
    if meaning.is("initialize") {
        let text = "revisions without sessions have no initialize";
        return Some((StatusCode::NOT_FOUND, METHOD_NOT_FOUND, text.to_owned()));
    }
    let name = mismatch(headers, meaning)?;
    let text = format!("the header {name} does not say the same as the message");
    Some((StatusCode::BAD_REQUEST, HEADER_MISMATCH, text))
}

/// The header that says something else than its message, if one does: whoever routes by headers must not be
/// deceived.
fn mismatch(headers: &HeaderMap, meaning: &Meaning) -> Option<HeaderName> {
    let revision = meaning.revision.as_deref().map(HeaderValue::from_str);
    let told = meaning.headers(meaning.revision.as_deref());
    let mut expected = vec![(METHOD, told.get(METHOD)), (NAME, told.get(NAME))];
    if let Some(Ok(revision)) = &revision {
        expected.push((REVISION_HEADER, Some(revision)));
    }
    let mut wrong = expected
        .into_iter()
        .filter(|(name, value)| headers.get(name) != *value);
    wrong.next().map(|(name, _)| name)
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
