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

/// Beginnings of percent-encoded characters that parsers may take for something else than a part of a name:
/// dots, slashes, percent signs and control characters.
const HIDING: [&str; 7] = ["%2e", "%2f", "%5c", "%25", "%0", "%1", "%7f"];

/// Returns true if every parser reads `segment` as a single path segment.
pub(super) fn is_plain(segment: &str) -> bool {
    let lower = segment.to_ascii_lowercase();
    !matches!(segment, "" | "." | "..") && !HIDING.iter().any(|hiding| lower.contains(hiding))
}
