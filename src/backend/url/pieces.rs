//! Parts of a URL.

/// Splits off the scheme. A single letter is a Windows drive, not a scheme.
pub(super) fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.trim_start().split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    is_scheme.then_some((scheme, rest))
}

/// Returns true if a path ends with options, like a URL. A URL was probably meant, and the
/// directory's name would contain the values.
pub(super) fn has_options(path: &str) -> bool {
    path.rsplit_once('?')
        .is_some_and(|(_, options)| options.contains('='))
}

/// Returns true if every parser reads `segment` as a single path segment.
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
