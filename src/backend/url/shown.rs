//! URLs of stores with secrets hidden.

use super::pieces::split_scheme;

/// Replacement for hidden text.
const HIDDEN: &str = "…";
/// Maximum number of digits of a port.
const MAX_PORT: usize = 5;

/// Hides user, password, options and fragment of `url`.
///
/// It may not be a valid URL: people paste secrets that contain `/`, `?` or `@` without encoding
/// them, and a scheme without its colon turns the rest into a path. Any ambiguous part is hidden.
pub(super) fn shown(url: &str) -> String {
    let (scheme, rest) = match split_scheme(url) {
        Some((scheme, rest)) => (format!("{scheme}:"), rest),
        None => (String::new(), url),
    };
    let is_place = scheme.is_empty() || scheme.eq_ignore_ascii_case("file:");
    let (slashes, rest) = match rest.strip_prefix("//") {
        Some(rest) if !scheme.is_empty() => ("//", rest),
        _ => ("", rest),
    };
    let (user, rest) = without_user(rest, is_place);
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (head, tail) = rest.split_at(end);
    let head = if is_place || slashes.is_empty() {
        head.to_owned()
    } else {
        without_password(head)
    };
    let tail = if tail.is_empty() {
        String::new()
    } else {
        format!("{}{HIDDEN}", &tail[..1])
    };
    format!("{scheme}{slashes}{user}{head}{tail}")
}

/// Replaces user and password; returns the replacement and the rest.
fn without_user(rest: &str, is_place: bool) -> (String, &str) {
    let Some((before, _)) = rest.rsplit_once('@') else {
        return (String::new(), rest);
    };
    let head = rest.find(['?', '#']).unwrap_or(rest.len());
    let (host, of_head) = (
        rest.find('/').unwrap_or(rest.len()),
        rest[..head].rfind('@'),
    );
    let at = match of_head {
        // A directory's name may contain an `@`, but text between a `:` and an `@` looks like a
        // password.
        Some(at) if is_place => (at < host || rest[..at].contains(':')).then_some(at),
        Some(at) => Some(at),
        // After a `?`, the `@` is in an option's value, unless the user part began before.
        None => rest[..head.min(host)].contains(':').then_some(before.len()),
    };
    match at {
        Some(at) => (format!("{HIDDEN}@"), &rest[at + 1..]),
        None => (String::new(), rest),
    }
}

/// Hides text after a host's `:` that is not a port: it may be a password without its `@`.
fn without_password(head: &str) -> String {
    let (host, path) = head.split_at(head.find('/').unwrap_or(head.len()));
    match host.split_once(':') {
        Some((name, port))
            if port.len() > MAX_PORT || !port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            format!("{name}:{HIDDEN}")
        }
        _ => format!("{host}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_oneof};
    use proptest::{prop_assert, proptest};

    use super::*;

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (url, expected) in [
            ("memory:", "memory:"),
            ("memory:grep", "memory:grep"),
            (".offcut", ".offcut"),
            ("/var/lib/me@work/store", "/var/lib/me@work/store"),
            ("C:\\Users\\me", "C:\\Users\\me"),
            ("file:///var/lib/agent", "file:///var/lib/agent"),
            ("file:///var/me@work", "file:///var/me@work"),
            ("file://me:pass@host/x", "file://…@host/x"),
            ("s3://bucket/agents/a-1", "s3://bucket/agents/a-1"),
            ("http://host:9000/x", "http://host:9000/x"),
            (
                "s3://bucket/p?region=eu&secret_access_key=abc#x",
                "s3://bucket/p?…",
            ),
            ("s3://bucket?abc", "s3://bucket?…"),
            ("s3://bucket?ABC=def", "s3://bucket?…"),
            ("s3://bucket?endpoint=http://me:pass@host", "s3://bucket?…"),
            ("s3://me@bucket", "s3://…@bucket"),
            ("s3://me:p/a?s@s@bucket/p", "s3://…@bucket/p"),
            ("s3://me:pass/bucket", "s3://me:…"),
            ("s3:me:pass@bucket", "s3:…@bucket"),
            ("s3//me:pass@bucket/p", "…@bucket/p"),
            ("s3:/bucket?token=abc", "s3:/bucket?…"),
            ("agents?token=abc", "agents?…"),
            ("", ""),
        ] {
            assert_eq!(shown(url), expected, "{url}");
            assert_eq!(shown(expected), expected, "what is shown is shown as it is");
        }
    }

    proptest! {
        /// A secret of any characters, anywhere that people put one.
        #[test]
        fn no_secret_is_shown(
            secret in "SECRET[ -~]{0,8}SECRET",
            place in 0..6_usize,
            user in prop_oneof!["[a-z]{1,4}:", "[a-z]{1,4}:[a-z0-9/+=]{1,9}"],
            scheme in prop_oneof!["s3", "gs", "az", "memory", "https"].prop_map(|scheme: String| scheme),
            tail in any::<bool>(),
        ) {
            let tail = if tail { "?timeout=1s" } else { "" };
            let url = match place {
                0 => format!("{scheme}://{user}{secret}@bucket/p{tail}"),
                1 => format!("{scheme}://bucket/p?token={secret}"),
                2 => format!("{scheme}://bucket/p?timeout=1s&token={secret}"),
                3 => format!("{scheme}://bucket/p?{secret}"),
                4 => format!("{scheme}:/bucket/p?token={secret}"),
                _ => format!("{scheme}://bucket/p#{secret}"),
            };
            let shown = shown(&url);
            prop_assert!(!shown.contains("SECRET"), "{url}: {shown}");
        }
    }
}
