//! Providers, and the one that a request is for.

use std::collections::BTreeMap;

use http::Uri;
use http::uri::InvalidUri;

use crate::gateway::settings::{GatewayError, ServeSettings, is_plain};

/// The providers that are known without settings.
const PUBLIC: [(&str, &str); 3] = [
    ("anthropic", "https://api.anthropic.com"),
    ("gemini", "https://generativelanguage.googleapis.com"),
    ("openai", "https://api.openai.com"),
];

/// First segments of paths that are providers' or the server's own.
const TAKEN: [&str; 7] = [
    "v1", "v1beta", "v1alpha", "healthz", "readyz", "metrics", "page",
];

/// A provider.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    /// Its URL, without a slash at its end.
    url: String,
}

impl Upstream {
    fn parse(name: &str, url: &str) -> Result<Self, GatewayError> {
        let wrong = |problem: &str| GatewayError::entry("upstreams", name, problem);
        if !is_plain(name) || TAKEN.contains(&name) {
            return Err(wrong(
                "this name can't begin a path: choose letters, digits, `-` and `_`, and not `v1`, `v1beta`, `v1alpha`, `healthz`, `readyz`, `metrics` or `page`",
            ));
        }
        let uri: Uri = url.parse().unwrap_or_default();
        let path = uri.path().trim_end_matches('/');
        let is_doubled = ["anthropic", "openai"].contains(&name) && path.ends_with("/v1");
        match (uri.scheme_str(), uri.authority(), uri.query()) {
            (Some(scheme @ ("http" | "https")), Some(authority), None)
                if !is_doubled && !authority.as_str().contains('@') =>
            {
                Ok(Self {
                    name: name.to_owned(),
                    url: format!("{scheme}://{authority}{path}"),
                })
            }
            // The URL is not shown: it may hold a password.
            _ => Err(wrong(
                "this is not a URL such as https://host/path, without user, password and query, nor the `/v1` that clients send",
            )),
        }
    }

    /// The provider's address for `rest`, which begins with a slash.
    pub(crate) fn uri(&self, rest: &str) -> Result<Uri, InvalidUri> {
        format!("{}{rest}", self.url).parse()
    }
}

/// All providers.
#[derive(Debug)]
pub(crate) struct Upstreams {
    named: BTreeMap<String, Upstream>,
    default: Option<String>,
}

impl Upstreams {
    pub(crate) fn new(settings: &ServeSettings) -> Result<Self, GatewayError> {
        let mut named = BTreeMap::new();
        let own = settings
            .upstreams
            .iter()
            .map(|(name, url)| (&**name, &**url));
        for (name, url) in PUBLIC.into_iter().chain(own) {
            named.insert(name.to_owned(), Upstream::parse(name, url)?);
        }
        let default = settings.default_upstream.clone();
        if default
            .as_ref()
            .is_some_and(|name| !named.contains_key(name))
        {
            let names = named.keys().cloned().collect::<Vec<_>>().join(", ");
            let problem = format!("no upstream has this name: give one of {names}");
            return Err(GatewayError::settings("default_upstream", problem));
        }
        Ok(Self { named, default })
    }

    /// The provider for a path with its query, and the rest of the path there; `None` if its first segment names none,
    /// and there is no default.
    pub(crate) fn route<'a>(&self, path: &'a str) -> Option<(&Upstream, &'a str)> {
        let first = path[1..].split(['/', '?']).next().unwrap_or_default();
        let Some(upstream) = self.named.get(first) else {
            return Some((self.named.get(self.default.as_deref()?)?, path));
        };
        let rest = &path[1 + first.len()..];
        // The prefix alone stands for the provider's root.
        Some((upstream, if rest.is_empty() { "/" } else { rest }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstreams() -> Upstreams {
        let settings = ServeSettings {
            upstreams: BTreeMap::from([("lab".to_owned(), "http://lab:4000/base/".to_owned())]),
            ..ServeSettings::default()
        };
        Upstreams::new(&settings).unwrap()
    }

    #[test]
    fn a_provider_is_found_by_its_prefix_and_no_other_gets_a_request() {
        let upstreams = upstreams();
        let routed = |path| {
            let (upstream, rest) = upstreams.route(path)?;
            Some(upstream.uri(rest).unwrap().to_string())
        };
        for (path, expected) in [
            ("/lab/v1/x?y=%20", "http://lab:4000/base/v1/x?y=%20"),
            ("/lab", "http://lab:4000/base/"),
            ("/openai/v1/messages", "https://api.openai.com/v1/messages"),
        ] {
            assert_eq!(routed(path).as_deref(), Some(expected), "{path}");
        }
        for path in ["/", "/v1/messages", "/labb/v1/messages", "//127.0.0.1:1/x"] {
            assert_eq!(routed(path), None, "{path}");
        }
        let upstreams = Upstreams {
            default: Some("lab".to_owned()),
            ..upstreams
        };
        let name = |path| upstreams.route(path).map(|(upstream, _)| &*upstream.name);
        assert_eq!(name("/v1/messages"), Some("lab"));
        assert_eq!(name("/openai/v1/messages"), Some("openai"));
    }

    #[test]
    fn wrong_upstreams_are_refused_without_their_url() {
        for (name, url) in [
            ("v1", "http://a"),
            ("a/b", "http://a"),
            ("a", "ftp://a"),
            ("a", "http://user:secret@a"),
            ("a", "secret"),
            ("a", "https://a/?key=secret"),
            ("openai", "https://secret/v1/"),
        ] {
            let error = Upstream::parse(name, url).unwrap_err().to_string();
            assert!(
                error.contains("serve.upstreams") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
