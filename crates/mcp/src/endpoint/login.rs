//! Metadata of a server, for clients that log in there: they accept only metadata about the URL that they were given,
//! which is the endpoint's. All else of a login is between the client and the authorization server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use serde_json::Value;
use tokio::time::timeout;

use super::reply::{self, Body};
use crate::locked::locked;
use crate::remote::Remote;
use crate::remote::address::{is_same_origin, shown};
use crate::remote::body::whole;
use crate::remote::meaning::REVISION_HEADER;

/// Path of the endpoint.
pub(super) const PATH: &str = "/mcp";
const RESOURCE: &str = "/.well-known/oauth-protected-resource";
/// Places of an authorization server's metadata, for servers that are one themselves.
const ISSUER: [&str; 2] = [
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
];
/// Maximum number of bytes of metadata, and the time for it at one place.
const MAX: usize = 256 * 1024;
const PLACE: Duration = Duration::from_secs(5);

/// The way to log in at an endpoint's server.
pub(super) struct Login {
    connection: Arc<Remote>,
    /// The URL of the server's metadata, if it has named one.
    named: Mutex<Option<Uri>>,
}

impl Login {
    pub(super) fn new(connection: Arc<Remote>) -> Self {
        Self {
            connection,
            named: Mutex::default(),
        }
    }

    /// Makes a refusal name the endpoint's metadata in place of the server's.
    pub(super) fn lead(&self, headers: &mut HeaderMap, host: &str) {
        let all = headers.iter_mut();
        for (_, challenge) in all.filter(|(name, _)| *name == WWW_AUTHENTICATE) {
            let said = challenge.to_str().unwrap_or_default();
            let Some((before, url, after)) = named_metadata(said) else {
                continue;
            };
            // Nobody on the way can change what is there, or it is the server's own.
            let is_trusted = |url: &Uri| {
                url.scheme_str() == Some("https") || is_same_origin(url, &self.connection.url)
            };
            *locked(&self.named) = url.parse().ok().filter(is_trusted);
            let led = format!("{before}\"http://{host}{RESOURCE}{PATH}\"{after}");
            if let Ok(led) = HeaderValue::from_str(&led) {
                *challenge = led;
            }
        }
    }

    /// The metadata at one of the paths where clients look for it; `None` at any other path, or if there is none.
    pub(super) async fn answer(&self, path: &str, host: &str) -> Option<Response<Body>> {
        let is_below = |known: &str| {
            let rest = path.strip_prefix(known);
            rest.is_some_and(|rest| ["", PATH].contains(&rest.trim_end_matches('/')))
        };
        let url = &self.connection.url;
        let origin = shown(url);
        let metadata = if is_below(RESOURCE) {
            let named = locked(&self.named).as_ref().map(Uri::to_string);
            let path = url.path().trim_end_matches('/');
            let usual = [
                format!("{origin}{RESOURCE}{path}"),
                format!("{origin}{RESOURCE}"),
            ];
            let mut found = None;
            for place in named.into_iter().chain(usual) {
                found = self.read(&place).await;
                if found.is_some() {
                    break;
                }
            }
            let mut metadata = found?;
            // Of any other resource, the client has to see the name: it refuses to get a token for that one.
            let resource = metadata["resource"].as_str();
            if resource.is_none_or(|resource| is_above(resource, url)) {
                metadata["resource"] = format!("http://{host}{PATH}").into();
                metadata.as_object_mut()?.remove("signed_metadata");
            }
            metadata
        } else {
            let known = ISSUER.into_iter().find(|known| is_below(known))?;
            self.read(&format!("{origin}{known}")).await?
        };
        Some(reply::json(StatusCode::OK, metadata.to_string()))
    }

    /// The object at a URL, if there is one.
    async fn read(&self, url: &str) -> Option<Value> {
        let headers = HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static("application/json")),
            (REVISION_HEADER, HeaderValue::from_static("2025-11-25")),
        ]);
        let (url, get, nothing) = (url.parse().ok()?, Method::GET, Bytes::new());
        let sent = self.connection.elsewhere(&url, &get, headers, nothing);
        let read = async {
            let answer = sent.await.ok()?;
            let answer = answer.status().is_success().then_some(answer)?;
            let body = whole(answer.into_body(), MAX).await.ok()?;
            serde_json::from_slice(&body).ok().filter(Value::is_object)
        };
        timeout(PLACE, read).await.ok()?
    }
}

/// The parts of a challenge around the URL of the metadata, and that URL.
fn named_metadata(challenge: &str) -> Option<(&str, &str, &str)> {
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

/// Returns true if a token for `resource` is one for `url`.
fn is_above(resource: &str, url: &Uri) -> bool {
    let Ok(resource) = resource.parse::<Uri>() else {
        return false;
    };
    let with_end = |path: &str| format!("{}/", path.trim_end_matches('/'));
    is_same_origin(&resource, url) && with_end(url.path()).starts_with(&with_end(resource.path()))
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
    fn a_resource_is_the_server_or_above_it() {
        let url = "https://a/x/mcp".parse().unwrap();
        for above in ["https://a", "https://A/x", "https://a/x/mcp/"] {
            assert!(is_above(above, &url), "{above}");
        }
        for other in [
            "https://b/x/mcp",
            "http://a/x/mcp",
            "https://a/x/mcp/y",
            "https://a/x/m",
            "",
        ] {
            assert!(!is_above(other, &url), "{other}");
        }
    }
}
