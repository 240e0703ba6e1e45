//! Challenges and forms of OAuth.

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

/// The value of a form's field.
pub(super) fn decoded(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A value for a form's field.
pub(super) fn encoded(value: &str) -> String {
    let mut all = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                all.push(char::from(byte));
            }
            byte => all.push_str(&format!("%{byte:02X}")),
        }
    }
    all
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

    #[test]
    fn values_of_forms_are_decoded() {
        assert_eq!(decoded("a+b%2fc%zz%"), "a b/c%zz%");
        assert_eq!(decoded(&encoded("https://a/b c?d=é")), "https://a/b c?d=é");
    }
}
