//! The pieces of a URL.

/// The scheme and what comes after its colon. A single letter is a drive of Windows.
pub(super) fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.trim_start().split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    is_scheme.then_some((scheme, rest))
}

/// Whether a path ends as a URL with options does: it was meant for one, and its directory's name
/// would hold their values.
pub(super) fn has_options(path: &str) -> bool {
    path.rsplit_once('?')
        .is_some_and(|(_, options)| options.contains('='))
}

/// Whether a segment of a path is one to every parser.
pub(super) fn is_plain(segment: &str) -> bool {
    let decoded = percent_decoded(segment.as_bytes());
    let is_decoded = decoded.len() < segment.len();
    let hides = |byte: &u8| matches!(byte, b'/' | b'\\' | b'%') || byte.is_ascii_control();
    match &*decoded {
        b"" | b"." | b".." => false,
        decoded => !(is_decoded && decoded.iter().any(hides)),
    }
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        match after {
            [high, low, after @ ..] if byte == b'%' => {
                if let (Some(high), Some(low)) = (digit(high), digit(low)) {
                    decoded.push(high << 4 | low);
                    rest = after;
                    continue;
                }
            }
            _ => {}
        }
        decoded.push(byte);
        rest = after;
    }
    decoded
}
