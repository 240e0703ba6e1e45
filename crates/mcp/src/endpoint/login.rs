//! OAuth through the endpoint: its clients log in at the server's authorization server.
//!
//! A client accepts only metadata about the URL that it was given, which is the endpoint's. Tokens must
//! be for the server's URL, since both servers check that. So the endpoint shows the server's metadata with
//! its own URL in place of the server's, and puts the server's back into what clients ask of the
//! authorization server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use form_urlencoded::{byte_serialize, parse};
use http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::reply::{self, Body};
use crate::http::is_loopback;
use crate::locked::locked;
use crate::remote::address::{self, is_same_origin};
use crate::remote::body::whole;
use crate::remote::connection::Connection;
use crate::remote::meaning::REVISION_HEADER;

/// Path of the endpoint.
pub(super) const PATH: &str = "/mcp";
/// The path to which a client leads its user's browser.
pub(super) const AUTHORIZE: &str = "/authorize";
const TOKEN: &str = "/token";
const REGISTER: &str = "/register";
const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";
/// Maximum number of bytes of metadata, or of a form.
const MAX: usize = 256 * 1024;
/// Time for metadata at one place, and for all.
const PLACE: Duration = Duration::from_secs(5);
const METADATA: Duration = Duration::from_secs(15);
/// Time for a form to come, and for the authorization server to answer it.
const FORM: Duration = Duration::from_secs(30);

/// The way to log in at an endpoint's server.
pub(super) struct Login {
    connection: Arc<Connection>,
    /// The URL of the server's metadata, if it has named one.
    named: Mutex<Option<Uri>>,
}

impl Login {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self {
            connection,
            named: Mutex::default(),
        }
    }

    /// Makes a refusal name the endpoint's metadata in place of the server's.
    pub(super) fn lead(&self, headers: &mut HeaderMap, host: &str) {
        let own = format!("http://{host}{RESOURCE}{PATH}");
        let lead = |challenge: &HeaderValue| {
            let named = named_metadata(challenge.to_str().unwrap_or_default());
            let Some((before, url, after)) = named else {
                return Some(challenge.clone());
            };
            if let Ok(url) = url.parse() {
                *locked(&self.named) = Some(url);
            }
            HeaderValue::from_str(&format!("{before}\"{own}\"{after}")).ok()
        };
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
        let led: Vec<HeaderValue> = challenges.filter_map(lead).collect();
        headers.remove(WWW_AUTHENTICATE);
        for challenge in led {
            headers.append(WWW_AUTHENTICATE, challenge);
        }
    }

    /// Answers a request to one of the paths of a login; `None` for any other.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        host: &str,
    ) -> Option<Response<Body>> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let is_below = |known: &str| {
            let rest = path.strip_prefix(known);
            rest.is_some_and(|rest| ["", PATH].contains(&rest.trim_end_matches('/')))
        };
        let is_metadata = is_below(SERVER) || is_below(OPENID);
        let is_known =
            is_below(RESOURCE) || is_metadata || [AUTHORIZE, TOKEN, REGISTER].contains(&path);
        if !is_known {
            return None;
        }
        let Ok(found) = timeout(METADATA, self.metadata()).await else {
            let problem = "the metadata of the server takes too long";
            return Some(refused(StatusCode::GATEWAY_TIMEOUT, problem));
        };
        let own = format!("http://{host}");
        let place = |name, usual| match found.of_issuer[name].as_str() {
            Some(place) => self.trusted(place),
            None => self.trusted(&format!("{}{usual}", self.origin())),
        };
        Some(match (path, parts.method) {
            // A token for another server's resource would be given to this one.
            (AUTHORIZE, Method::GET) | (TOKEN, Method::POST) if !found.is_of_server => {
                let problem = "the server names a resource that is not its own";
                refused(StatusCode::BAD_REQUEST, problem)
            }
            (AUTHORIZE, Method::GET) => match place("authorization_endpoint", AUTHORIZE) {
                Some(place) => found.authorize(&own, parts.uri.query(), &place),
                None => refused(
                    StatusCode::BAD_REQUEST,
                    "the server leads to a place that gets no secrets",
                ),
            },
            (TOKEN, Method::POST) => {
                let change = |form: &str| found.with_resource(&own, form);
                let place = place("token_endpoint", TOKEN);
                self.post(place, &parts.headers, body, change).await
            }
            (REGISTER, Method::POST) => {
                let place = place("registration_endpoint", REGISTER);
                self.post(place, &parts.headers, body, str::to_owned).await
            }
            (_, Method::GET) if is_metadata => found.issuer_shown(&own)?,
            (_, Method::GET) if is_below(RESOURCE) => found.server_shown(&own)?,
            _ => reply::empty(StatusCode::METHOD_NOT_ALLOWED),
        })
    }

    /// Sends a form of a client's on.
    async fn post(
        &self,
        place: Option<Uri>,
        headers: &HeaderMap,
        body: Incoming,
        change: impl Fn(&str) -> String,
    ) -> Response<Body> {
        let form = timeout(FORM, whole(body, MAX)).await;
        let form = form.ok().and_then(Result::ok);
        let form = form.as_deref().and_then(|form| str::from_utf8(form).ok());
        let (Some(url), Some(form)) = (place, form) else {
            return reply::empty(StatusCode::BAD_REQUEST);
        };
        let mut sent = picked(headers, [AUTHORIZATION, CONTENT_TYPE, ACCEPT]);
        for value in sent.values_mut() {
            value.set_sensitive(true);
        }
        let form = Bytes::from(change(form));
        let answer = self.connection.elsewhere(&url, &Method::POST, sent, form);
        match timeout(FORM, answer).await {
            Ok(Ok(mut answer)) => {
                let shown = [CONTENT_TYPE, CACHE_CONTROL, WWW_AUTHENTICATE];
                *answer.headers_mut() = picked(answer.headers(), shown);
                answer.map(reply::passed)
            }
            _ => reply::empty(StatusCode::BAD_GATEWAY),
        }
    }

    /// Reads the metadata of the server, and of its authorization server.
    async fn metadata(&self) -> Metadata {
        let named = locked(&self.named).clone();
        let (url, origin) = (self.connection.url(), self.origin());
        let path = url.path().trim_end_matches('/');
        let places = named.map(|url| url.to_string()).into_iter().chain([
            format!("{origin}{RESOURCE}{path}"),
            format!("{origin}{RESOURCE}"),
        ]);
        let of_server = self.first(places).await;
        let whole_url = || format!("{origin}{}", url.path());
        let resource = of_server["resource"].as_str();
        let resource = resource.map_or_else(whole_url, str::to_owned);
        let issuer = of_server["authorization_servers"][0].as_str();
        let of_issuer = self.first(places_of(issuer.unwrap_or(&origin))).await;
        Metadata {
            is_of_server: is_above(&resource, url),
            resource,
            of_server,
            of_issuer,
        }
    }

    /// The first object that one of the URLs has, or null.
    async fn first(&self, urls: impl IntoIterator<Item = String>) -> Value {
        for url in urls {
            let Some(url) = self.trusted(&url) else {
                continue;
            };
            let headers = HeaderMap::from_iter([
                (ACCEPT, HeaderValue::from_static("application/json")),
                (REVISION_HEADER, HeaderValue::from_static("2025-11-25")),
            ]);
            let (get, nothing) = (Method::GET, Bytes::new());
            let sent = self.connection.elsewhere(&url, &get, headers, nothing);
            let read = async {
                let answer = sent.await.ok()?;
                let answer = answer.status().is_success().then_some(answer)?;
                let body = whole(answer.into_body(), MAX).await.ok()?;
                serde_json::from_slice(&body).ok().filter(Value::is_object)
            };
            if let Ok(Some(object)) = timeout(PLACE, read).await {
                return object;
            }
        }
        Value::Null
    }

    /// A URL that secrets may be sent to: over TLS, on the server's own host, or on this machine if the
    /// server is there too.
    fn trusted(&self, url: &str) -> Option<Uri> {
        let url: Uri = url.parse().ok()?;
        let server = self.connection.url();
        let is_local = |url: &Uri| url.host().is_some_and(is_loopback);
        let is_trusted = url.scheme_str() == Some("https")
            || url.scheme() == server.scheme() && url.host() == server.host()
            || url.scheme_str() == Some("http") && is_local(&url) && is_local(server);
        (is_trusted && url.host().is_some()).then_some(url)
    }

    /// The server's scheme, host and port.
    fn origin(&self) -> String {
        address::shown(self.connection.url())
    }
}

/// The headers of these names, each with its first value.
fn picked<const N: usize>(headers: &HeaderMap, names: [HeaderName; N]) -> HeaderMap {
    let found = names.into_iter();
    let found = found.filter_map(|name| Some((name.clone(), headers.get(name)?.clone())));
    found.collect()
}

/// Metadata with fields of the endpoint's own in place of theirs. `None` if there is none.
fn shown<const N: usize>(metadata: &Value, own: [(&str, Value); N]) -> Option<Response<Body>> {
    let mut said = metadata.as_object()?.clone();
    if N > 0 {
        said.remove("signed_metadata");
    }
    said.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Some(reply::json(StatusCode::OK, Value::from(said).to_string()))
}

/// An error as OAuth spells it.
fn refused(status: StatusCode, problem: &str) -> Response<Body> {
    let error =
        json!({"error": "invalid_target", "error_description": format!("offcut: {problem}")});
    reply::json(status, error.to_string())
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

/// The metadata of a server and of its authorization server.
struct Metadata {
    /// The URL that tokens are for.
    resource: String,
    /// True if that is the server's own URL, or one above it.
    is_of_server: bool,
    /// The server's metadata, or null.
    of_server: Value,
    /// The metadata of its first authorization server, or of its own origin, or null.
    of_issuer: Value,
}

impl Metadata {
    /// The server's metadata as metadata of the endpoint.
    fn server_shown(&self, own: &str) -> Option<Response<Body>> {
        let said = &self.of_server;
        let resource = ("resource", json!(format!("{own}{PATH}")));
        let servers = "authorization_servers";
        // Clients compare what an authorization server calls itself with its metadata: they have to see it as it is.
        let names_itself = self.of_issuer["authorization_response_iss_parameter_supported"] == true;
        match said.get(servers) {
            // The client has to see that, and refuses.
            _ if !self.is_of_server => shown(said, []),
            Some(_) if !names_itself => shown(said, [resource, (servers, json!([own]))]),
            _ => shown(said, [resource]),
        }
    }

    /// The authorization server's metadata with the endpoint's own places.
    fn issuer_shown(&self, own: &str) -> Option<Response<Body>> {
        let places = [
            ("issuer", ""),
            ("authorization_endpoint", AUTHORIZE),
            ("token_endpoint", TOKEN),
        ];
        let places = places.map(|(name, path)| (name, json!(format!("{own}{path}"))));
        shown(&self.of_issuer, places)
    }

    /// Sends a browser on to the `place` of the authorization server.
    fn authorize(&self, own: &str, query: Option<&str>, place: &Uri) -> Response<Body> {
        let query = self.with_resource(own, query.unwrap_or_default());
        let join = if place.query().is_some() { '&' } else { '?' };
        let mut answer = reply::empty(StatusCode::FOUND);
        match HeaderValue::from_str(&format!("{place}{join}{query}")) {
            Ok(place) => {
                answer.headers_mut().insert(LOCATION, place);
                answer
            }
            Err(_) => reply::empty(StatusCode::BAD_REQUEST),
        }
    }

    /// A form in which the endpoint's own URL as the resource is the server's.
    fn with_resource(&self, own: &str, form: &str) -> String {
        let of_own = [own.to_owned(), format!("{own}{PATH}")];
        let is_own = |pair: &str| {
            let field = parse(pair.as_bytes()).next();
            field.is_some_and(|(name, value)| {
                name == "resource" && of_own.iter().any(|own| value.trim_end_matches('/') == own)
            })
        };
        let servers: String = byte_serialize(self.resource.as_bytes()).collect();
        let pairs = form.split('&').map(|pair| {
            if is_own(pair) {
                format!("resource={servers}")
            } else {
                pair.to_owned()
            }
        });
        pairs.collect::<Vec<_>>().join("&")
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

/// The places where an authorization server may have its metadata.
fn places_of(issuer: &str) -> Vec<String> {
    let Ok(url) = issuer.parse::<Uri>() else {
        return Vec::new();
    };
    let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Vec::new();
    };
    let origin = format!("{scheme}://{authority}");
    let path = url.path().trim_end_matches('/');
    let mut places = vec![
        format!("{origin}{SERVER}{path}"),
        format!("{origin}{OPENID}{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{origin}{path}{OPENID}"));
    }
    places
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
    fn only_the_endpoints_own_url_is_replaced_in_forms() {
        let found = Metadata {
            resource: "https://a/mcp?x=1".to_owned(),
            is_of_server: true,
            of_server: Value::Null,
            of_issuer: Value::Null,
        };
        let form = "a=b&resource=http%3A%2F%2F127.0.0.1%3A1%2Fmcp&resource=https%3A%2F%2Fother&c";
        assert_eq!(
            found.with_resource("http://127.0.0.1:1", form),
            "a=b&resource=https%3A%2F%2Fa%2Fmcp%3Fx%3D1&resource=https%3A%2F%2Fother&c"
        );
    }

    #[test]
    fn an_authorization_server_has_its_metadata_in_known_places() {
        assert_eq!(
            places_of("https://a/t/"),
            [
                "https://a/.well-known/oauth-authorization-server/t",
                "https://a/.well-known/openid-configuration/t",
                "https://a/t/.well-known/openid-configuration"
            ]
        );
        assert!(places_of("nonsense").is_empty());
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
