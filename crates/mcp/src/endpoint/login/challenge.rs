//! Challenges of OAuth.

/// The parts of a challenge around the URL of the metadata, and that URL.
pub(super) fn named_metadata(challenge: &str) -> Option<(&str, &str, &str)> {
    let name = "resource_metadata=";
    let at = challenge.find(name)? + name.len();
    let (before, rest) = challenge.split_at(at);
    match rest.strip_prefix('"') {
        Some(rest) => rest
            .split_once('"')
            .map(|(url, after)| (before, url, after)),
        None => {
            let end = rest.find([',', ' ']).unwrap_or(rest.len());
            Some((before, &rest[..end], &rest[end..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_split_around_its_url() {
        for (challenge, expected) in [
            (
                r#"Bearer resource_metadata="https://a/b", scope="x""#,
                Some(("Bearer resource_metadata=", "https://a/b", r#", scope="x""#)),
            ),
            (
                "Bearer resource_metadata=https://a/b, x=y",
                Some(("Bearer resource_metadata=", "https://a/b", ", x=y")),
            ),
            ("Bearer realm=\"x\"", None),
            ("Bearer resource_metadata=\"https://a", None),
        ] {
            assert_eq!(named_metadata(challenge), expected, "{challenge}");
        }
    }
}
