//! The credentials of a client: everything by which a server may tell one from another. And names that nobody can guess.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use rustls::crypto::ring::default_provider;
use sha2::{Digest, Sha256};

/// Headers by which no server tells its clients apart, and which may differ in each request.
const HARMLESS: [&str; 29] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "baggage",
    "cache-control",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "date",
    "dnt",
    "expect",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "origin",
    "pragma",
    "priority",
    "referer",
    "traceparent",
    "tracestate",
    "upgrade-insecure-requests",
    "user-agent",
    "x-correlation-id",
    "x-request-id",
];
/// Beginnings of such names.
const HARMLESS_PREFIXES: [&str; 3] = ["mcp-param-", "sec-ch-", "sec-fetch-"];

/// Credentials as digests, so that none are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Credentials {
    /// `None` without any.
    all: Option<String>,
    /// Those besides a bearer token; `None` without one.
    besides_token: Option<String>,
}

impl Credentials {
    /// The credentials in headers and a query. Without the `secret`, nobody can try out which credentials have a
    /// name.
    pub(super) fn of(headers: &HeaderMap, query: Option<&str>, secret: &[u8]) -> Self {
        let mut names: Vec<&HeaderName> = headers.keys().filter(|name| may_tell(name)).collect();
        names.sort_unstable_by_key(|name| name.as_str());
        let digest = |names: &[&HeaderName]| {
            let mut digest = Sha256::new();
            // Lengths keep values apart.
            let mut add = |bytes: &[u8]| {
                digest.update((bytes.len() as u64).to_le_bytes());
                digest.update(bytes);
            };
            add(secret);
            add(query.unwrap_or_default().as_bytes());
            for name in names {
                for value in headers.get_all(*name) {
                    add(name.as_str().as_bytes());
                    add(value.as_bytes());
                }
            }
            shown(&digest.finalize())
        };
        let has_any = !names.is_empty() || query.is_some_and(|query| !query.is_empty());
        let all = has_any.then(|| digest(&names));
        names.retain(|name| **name != AUTHORIZATION);
        Self {
            all,
            besides_token: has_token(headers).then(|| digest(&names)),
        }
    }

    /// A name that does not tell what they are. `None` without any credentials.
    pub(super) fn name(&self) -> Option<&str> {
        self.all.as_deref()
    }

    /// Returns true if both have a bearer token, and all else is the same.
    pub(super) fn differs_by_token(&self, other: &Self) -> bool {
        self.besides_token.is_some() && self.besides_token == other.besides_token
    }
}

/// Returns true for a header by which a server may tell its clients apart.
fn may_tell(name: &HeaderName) -> bool {
    let name = name.as_str();
    !HARMLESS.contains(&name)
        && !HARMLESS_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

fn has_token(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (values.next(), values.next()) else {
        return false;
    };
    let scheme = only.as_bytes().get(..7);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
}

/// Number of bytes that make a name: 144 bits.
const LENGTH: usize = 18;

/// A digest or random bytes as a name.
fn shown(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(&bytes[..bytes.len().min(LENGTH)])
}

/// A new name. `None` if the system gives no random bytes.
pub(super) fn random_name() -> Option<String> {
    let mut bytes = [0; LENGTH];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(shown(&bytes))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(headers: &[(&str, &str)], query: Option<&str>) -> Credentials {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            all.append(name, HeaderValue::from_str(value).unwrap());
        }
        Credentials::of(&all, query, b"secret")
    }

    #[test]
    fn m6_every_header_by_which_a_server_may_tell_clients_apart_counts() {
        let none = of(&[], None);
        assert_eq!(none.name(), None);
        for (name, value) in [
            ("User-Agent", "a"),
            ("mcp-session-id", "a"),
            ("Mcp-Param-Region", "a"),
            ("traceparent", "a"),
            ("Sec-Fetch-Site", "none"),
        ] {
            assert_eq!(of(&[(name, value)], None), none, "{name}");
        }
        assert_eq!(of(&[], Some("")), none);
        let mut all = vec![of(&[], Some("key=a")), of(&[], Some("key=b"))];
        for name in [
            "authorization",
            "cookie",
            "x-api-key",
            "api-key",
            "mcp-token",
            "content-key",
            "x-forwarded-user",
            "x",
        ] {
            for value in ["a", "b", "a, b"] {
                all.push(of(&[(name, value)], None));
            }
            all.push(of(&[(name, "a"), (name, "b")], None));
            all.push(of(&[(name, "b"), (name, "a")], None));
        }
        all.push(of(&[("x-a", "b"), ("x-c", "d")], None));
        all.push(of(&[("x-a", "b"), ("x-c", "d")], Some("x-c=d")));
        for (nth, one) in all.iter().enumerate() {
            assert!(one.name().is_some());
            assert!(!all[..nth].contains(one), "the {nth}th is not its own");
        }
        // The order of headers, and how their names are written, say nothing.
        let other = of(&[("X-C", "d"), ("accept", "x"), ("X-A", "b")], None);
        assert_eq!(all[all.len() - 2], other);
        let mut headers = HeaderMap::new();
        headers.insert("x", HeaderValue::from_static("a"));
        let by = |secret: &[u8]| Credentials::of(&headers, None, secret);
        assert_ne!(by(b"one"), by(b"another"));
    }

    #[test]
    fn only_a_bearer_token_is_renewed() {
        let token = |token: &str| of(&[("authorization", token), ("x", "y")], None);
        assert!(token("Bearer a").differs_by_token(&token("bearer b")));
        for other in [
            token("Basic b"),
            of(&[("authorization", "Bearer b"), ("x", "z")], None),
            of(&[("x", "y")], None),
            of(
                &[
                    ("authorization", "Bearer b"),
                    ("authorization", "Bearer a"),
                    ("x", "y"),
                ],
                None,
            ),
        ] {
            assert!(!token("Bearer a").differs_by_token(&other));
        }
    }
}
