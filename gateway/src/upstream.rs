//! Providers, and the one that a request is for.

use std::collections::BTreeMap;

use http::uri::{Authority, Scheme};
use http::{HeaderMap, Uri};

use crate::error::GatewayError;
use crate::settings::ServeSettings;

/// The providers that are known without settings.
const PUBLIC: [(&str, &str); 3] = [
    ("anthropic", "https://api.anthropic.com"),
    ("gemini", "https://generativelanguage.googleapis.com"),
    ("openai", "https://api.openai.com"),
];

/// First segments of paths that are providers' or the server's own.
const TAKEN: [&str; 5] = ["v1", "v1beta", "v1alpha", "healthz", "metrics"];

/// A provider.
#[derive(Debug)]
pub(crate) struct Upstream {
    name: String,
    scheme: Scheme,
    authority: Authority,
    /// The URL's path, without a slash at its end.
    base: String,
}

impl Upstream {
    fn parse(name: &str, url: &str) -> Result<Self, GatewayError> {
        let wrong =
            |problem: &str| GatewayError::settings(format!("upstreams.{name}"), problem.to_owned());
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if !is_name(name) || TAKEN.contains(&name) {
            return Err(wrong(
                "this name can't begin a path: choose letters, digits, `-` and `_`, and not `v1`, `v1beta`, `v1alpha`, `healthz` or `metrics`",
            ));
        }
        // The URL is not shown: it may hold a password.
        let uri: Uri = url
            .parse()
            .map_err(|_| wrong("this is not a URL: write it as https://host/path"))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(wrong("this is not a URL: write it as https://host/path"));
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(wrong("only http:// and https:// are known"));
        }
        if authority.as_str().contains('@') {
            return Err(wrong(
                "a URL must not hold a user or a password: clients send their keys in headers",
            ));
        }
        let path = parts.path_and_query;
        if path.as_ref().is_some_and(|path| path.query().is_some()) {
            return Err(wrong("the URL must not have a query: leave out `?…`"));
        }
        let base = path.map_or_else(String::new, |path| {
            path.path().trim_end_matches('/').to_owned()
        });
        Ok(Self {
            name: name.to_owned(),
            scheme,
            authority,
            base,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The provider's address for `rest`, which begins with a slash.
    pub(crate) fn uri(&self, rest: &str) -> Result<Uri, http::Error> {
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{rest}", self.base))
            .build()
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
        let urls = PUBLIC.map(|(name, url)| (name.to_owned(), url.to_owned()));
        let mut urls = BTreeMap::from(urls);
        urls.extend(settings.upstreams.clone());
        let named = urls
            .into_iter()
            .map(|(name, url)| Ok((name.clone(), Upstream::parse(&name, &url)?)))
            .collect::<Result<BTreeMap<_, _>, GatewayError>>()?;
        let default = settings.default_upstream.clone();
        if let Some(unknown) = default.as_ref().filter(|name| !named.contains_key(*name)) {
            let names: Vec<_> = named.keys().map(String::as_str).collect();
            let problem = format!(
                "no upstream is called `{unknown}`: name one of {}",
                names.join(", ")
            );
            return Err(GatewayError::settings("default_upstream", problem));
        }
        Ok(Self { named, default })
    }

    /// The provider for a path with its query, and the rest of the path there. `None` if nothing
    /// tells which provider is meant.
    pub(crate) fn route<'a>(
        &self,
        path: &'a str,
        headers: &HeaderMap,
    ) -> Option<(&Upstream, &'a str)> {
        let first = path[1..].split(['/', '?']).next().unwrap_or_default();
        if let Some(upstream) = self.named.get(first) {
            let rest = &path[1 + first.len()..];
            // The prefix alone stands for the provider's root.
            return Some((upstream, if rest.is_empty() { "/" } else { rest }));
        }
        let name = own_path(path)
            .or_else(|| by_headers(headers))
            .or(self.default.as_deref())
            .or_else(|| path.starts_with("/v1/").then_some("openai"))?;
        Some((self.named.get(name)?, path))
    }
}

/// The only provider that has such a path.
fn own_path(path: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap_or_default();
    let is_below = |prefix: &str| {
        path.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is_below("/v1/messages") {
        Some("anthropic")
    } else if is_below("/v1beta") || is_below("/v1alpha") || path.contains(':') {
        Some("gemini")
    } else if is_below("/v1/chat") || is_below("/v1/responses") {
        Some("openai")
    } else {
        None
    }
}

/// The provider whose own header a request has.
fn by_headers(headers: &HeaderMap) -> Option<&'static str> {
    if headers.contains_key("anthropic-version") || headers.contains_key("x-api-key") {
        Some("anthropic")
    } else if headers.contains_key("x-goog-api-key") {
        Some("gemini")
    } else {
        None
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

    fn routed(path: &str, header: Option<&'static str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(header, http::HeaderValue::from_static("x"));
        }
        let upstreams = upstreams();
        let (upstream, rest) = upstreams.route(path, &headers)?;
        Some(upstream.uri(rest).unwrap().to_string())
    }

    #[test]
    fn a_provider_is_found_by_its_prefix_its_paths_or_its_headers() {
        let found = [
            ("/lab/v1/x?y=%20", None, "http://lab:4000/base/v1/x?y=%20"),
            ("/lab", None, "http://lab:4000/base/"),
            (
                "/openai/v1/messages",
                None,
                "https://api.openai.com/v1/messages",
            ),
            (
                "/v1/messages?beta=true",
                None,
                "https://api.anthropic.com/v1/messages?beta=true",
            ),
            (
                "/v1/chat/completions",
                None,
                "https://api.openai.com/v1/chat/completions",
            ),
            (
                "/v1/models",
                Some("anthropic-version"),
                "https://api.anthropic.com/v1/models",
            ),
            ("/v1/models", None, "https://api.openai.com/v1/models"),
            (
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                None,
                "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
        ];
        for (path, header, expected) in found {
            assert_eq!(routed(path, header).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(routed("/", None), None);
        assert_eq!(routed("/other", None), None);
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
        ] {
            let error = Upstream::parse(name, url).unwrap_err().to_string();
            assert!(
                error.contains("serve.upstreams") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
