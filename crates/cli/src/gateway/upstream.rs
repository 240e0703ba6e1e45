//! Providers, and the one that a request is for.

use std::collections::BTreeMap;

use http::uri::InvalidUri;
use http::{HeaderMap, Uri};

use crate::gateway::credentials::{NamedCredential, OTHER, credentials};
use crate::gateway::own::Denial;
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

/// First segments of providers' paths, besides those that begin with a version.
const API: [&str; 3] = ["api", "download", "upload"];

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

    /// The provider for a path with its query, and the rest of the path there. `None` if nothing
    /// tells which provider is meant.
    ///
    /// # Errors
    ///
    /// The path has no prefix, and the request bears a key that is another provider's, or nobody knows whose.
    pub(crate) fn route<'a>(
        &self,
        path: &'a str,
        headers: &HeaderMap,
    ) -> Result<Option<(&Upstream, &'a str)>, Denial> {
        let first = path[1..].split(['/', '?']).next().unwrap_or_default();
        if let Some(upstream) = self.named.get(first) {
            let rest = &path[1 + first.len()..];
            // The prefix alone stands for the provider's root.
            return Ok(Some((upstream, if rest.is_empty() { "/" } else { rest })));
        }
        let (path_alone, query) = path.split_once('?').unwrap_or((path, ""));
        let credentials = credentials(headers, Some(query));
        let mut owners = credentials.iter().map(NamedCredential::owner);
        let named = if let Some(default) = self.default.as_deref() {
            let is_known = PUBLIC.iter().any(|(name, _)| *name == default);
            // Own gateways take OpenAI's keys too, and those of providers that only settings name.
            let takes =
                |owner: &str| owner == default || !is_known && ["openai", OTHER].contains(&owner);
            owners
                .all(|owner| owner.is_none_or(takes))
                .then_some(default)
        } else if credentials.is_empty() {
            let Some(name) = by_path(path_alone) else {
                return Ok(None);
            };
            Some(name)
        } else {
            let version = first.strip_prefix('v').unwrap_or_default();
            let is_version = version.starts_with(|c: char| c.is_ascii_digit());
            // Keys go to no provider by the misspelled name of another one.
            if !is_version && !API.contains(&first) {
                return Ok(None);
            }
            let owner = owners.next().flatten();
            owner.filter(|_| owners.all(|other| other == owner))
        };
        let upstream = named.and_then(|name| self.named.get(name));
        Ok(Some((upstream.ok_or(Denial::OthersKey)?, path)))
    }
}

/// The provider of a path without a prefix, where no key tells it: the only one that has it, or OpenAI, whose form
/// others have too.
fn by_path(path: &str) -> Option<&'static str> {
    let is_below = |prefix: &str| {
        path.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is_below("/v1/messages") {
        Some("anthropic")
    } else if is_below("/v1beta") || is_below("/v1alpha") {
        Some("gemini")
    } else {
        path.starts_with("/v1/").then_some("openai")
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
        let (upstream, rest) = upstreams.route(path, &headers).unwrap()?;
        Some(upstream.uri(rest).unwrap().to_string())
    }

    #[test]
    fn a_provider_is_found_by_its_prefix_its_key_or_its_paths() {
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
                Some("x-api-key"),
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
        assert_eq!(routed("/labb/v1/messages", Some("x-api-key")), None);
        assert_eq!(routed("/vlab/v1/x", Some("x-api-key")), None);
    }

    /// The name of the upstream, `-` if nothing tells which, or `!` if a key is another's.
    fn name(default: Option<&str>, path: &str, credential: (&'static str, &'static str)) -> String {
        let settings = ServeSettings {
            upstreams: BTreeMap::from([("lab".to_owned(), "http://lab:4000".to_owned())]),
            default_upstream: default.map(str::to_owned),
            ..ServeSettings::default()
        };
        let mut headers = HeaderMap::new();
        if !credential.0.is_empty() {
            headers.insert(credential.0, http::HeaderValue::from_static(credential.1));
        }
        match Upstreams::new(&settings).unwrap().route(path, &headers) {
            Ok(Some((upstream, _))) => upstream.name.clone(),
            Ok(None) => "-".to_owned(),
            Err(_) => "!".to_owned(),
        }
    }

    #[test]
    fn a_key_goes_to_no_provider_but_its_own() {
        let none = ("", "");
        let openai = ("authorization", "Bearer sk-proj-1");
        let groq = ("authorization", "Bearer gsk_1");
        let other = ("authorization", "Bearer eyJ1");
        let oauth = ("authorization", "bearer  sk-ant-oat01-1");
        let tab = ("authorization", "Bearer\tsk-proj-1");
        let token = ("authorization", "Token sk-proj-1");
        let elsewhere = ("cookie", "a=1; key=sk-proj-0123456789ab");
        let anthropic = ("x-api-key", "k");
        let google = ("x-goog-api-key", "k");
        let azure = ("api-key", "k");
        let lab = Some("lab");
        for (default, path, credential, expected) in [
            (None, "/v1/chat/completions", groq, "!"),
            (None, "/v1/messages", groq, "!"),
            (lab, "/v1/chat/completions", groq, "lab"),
            (None, "/openai/v1/chat/completions", groq, "openai"),
            (None, "/v1/models/ft:gpt-4o:acme::x", openai, "openai"),
            (None, "/v1/files/a:1", openai, "openai"),
            (None, "/v1/responses/x:y", openai, "openai"),
            (None, "/v1/models/llama3:8b", none, "openai"),
            (None, "//127.0.0.1:1/x", openai, "-"),
            (None, "/x:generateContent", openai, "-"),
            (None, "/v1/files/m:generateContent", openai, "openai"),
            (None, "/v1/models/m:embedContent", google, "gemini"),
            (
                None,
                "/v1/tunedModels/m:streamGenerateContent?alt=sse",
                google,
                "gemini",
            ),
            (None, "/v1/models/m:generateContent", openai, "openai"),
            (None, "/v1beta/models/m:generateContent", openai, "openai"),
            (
                None,
                "/v1beta/models/m:generateContent?key=k",
                none,
                "gemini",
            ),
            (None, "/v1/chat/completions?key=k", none, "gemini"),
            (None, "/v1/chat/completions?%6bey=k", none, "gemini"),
            (None, "/v1/chat/completions?key=k", openai, "!"),
            (None, "/v1/chat/completions?access_token=k", none, "!"),
            (
                None,
                "/v1/chat/completions?q=AIza0123456789abcdef",
                none,
                "gemini",
            ),
            (lab, "/v1/chat/completions?access_token=k", none, "lab"),
            (None, "/v1/chat/completions?q=AIza", none, "openai"),
            (None, "/v1/messages", token, "openai"),
            (None, "/v1/messages", elsewhere, "openai"),
            (None, "/v1/messages?key=k", elsewhere, "!"),
            (None, "/v1/models?x=a:generateContent", openai, "openai"),
            (None, "/v1/messages", tab, "openai"),
            (None, "/v1/messages", openai, "openai"),
            (None, "/v1/messages", other, "!"),
            (None, "/v1/messages", oauth, "anthropic"),
            (None, "/v1/models", oauth, "anthropic"),
            (None, "/v1/models", google, "gemini"),
            (None, "/v1/chat/completions", anthropic, "anthropic"),
            (None, "/v1/chat/completions", azure, "!"),
            (None, "/lab/v1/messages", openai, "lab"),
            (None, "/openai/v1/messages", anthropic, "openai"),
            (lab, "/v1/models/llama3:8b", none, "lab"),
            (lab, "/v1/chat/completions", openai, "lab"),
            (lab, "/v1/messages", none, "lab"),
            (lab, "/v1beta/models/m:generateContent", none, "lab"),
            (lab, "/api/chat", other, "lab"),
            (lab, "/v1/chat/completions", azure, "lab"),
            (lab, "/v1/messages", anthropic, "!"),
            (lab, "/v1/messages", oauth, "!"),
            (lab, "/v1/chat/completions", google, "!"),
            (Some("anthropic"), "/v1/chat/completions", openai, "!"),
            (Some("anthropic"), "/v1/models", anthropic, "anthropic"),
            (Some("openai"), "/v1/responses", other, "openai"),
        ] {
            assert_eq!(
                name(default, path, credential),
                expected,
                "{path} {credential:?}"
            );
        }
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
