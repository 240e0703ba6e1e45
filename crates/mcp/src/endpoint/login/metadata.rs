//! Metadata of a server and of its authorization server, as the endpoint shows it.

use form_urlencoded::{byte_serialize, parse};
use http::header::LOCATION;
use http::{HeaderValue, Response, StatusCode, Uri};
use serde_json::{Map, Value, json};

use crate::endpoint::reply::{self, Body};
use crate::remote::address::is_same_origin;

/// Path of the endpoint.
pub(crate) const PATH: &str = "/mcp";
pub(super) const SERVER: &str = "/.well-known/oauth-authorization-server";
pub(super) const OPENID: &str = "/.well-known/openid-configuration";

/// The metadata of a server and of its authorization server.
pub(super) struct Metadata {
    /// The URL that tokens are for.
    pub(super) resource: String,
    /// True if that is the server's own URL, or one above it.
    pub(super) is_of_server: bool,
    /// The server's metadata. `None` if it has none.
    pub(super) of_server: Option<Map<String, Value>>,
    /// The metadata of its first authorization server, or of its own origin.
    pub(super) of_issuer: Option<Map<String, Value>>,
}

impl Metadata {
    /// The server's metadata as metadata of the endpoint.
    pub(super) fn server_shown(&self, own: &str) -> Option<Value> {
        let mut said = self.of_server.clone()?;
        if !self.is_of_server {
            // The client has to see that, and refuses.
            return Some(said.into());
        }
        said.insert("resource".to_owned(), json!(format!("{own}{PATH}")));
        said.remove("signed_metadata");
        if !self.names_itself() && said.contains_key("authorization_servers") {
            said.insert("authorization_servers".to_owned(), json!([own]));
        }
        Some(said.into())
    }

    /// The authorization server's metadata with the endpoint's own places.
    pub(super) fn issuer_shown(&self, own: &str) -> Option<Value> {
        let mut said = self.of_issuer.clone()?;
        for (name, path) in [
            ("issuer", ""),
            ("authorization_endpoint", "/authorize"),
            ("token_endpoint", "/token"),
        ] {
            said.insert(name.to_owned(), json!(format!("{own}{path}")));
        }
        said.remove("signed_metadata");
        Some(said.into())
    }

    /// Returns true if the authorization server names itself in its answers, which clients compare with
    /// its metadata: they have to see it as it is.
    fn names_itself(&self) -> bool {
        let name = "authorization_response_iss_parameter_supported";
        let of_issuer = self.of_issuer.as_ref();
        of_issuer.is_some_and(|said| said.get(name) == Some(&json!(true)))
    }

    pub(super) fn place(&self, name: &str) -> Option<String> {
        let place = self.of_issuer.as_ref()?.get(name)?;
        place.as_str().map(str::to_owned)
    }

    /// Sends a browser on to the `place` of the authorization server.
    pub(super) fn authorize(&self, own: &str, query: Option<&str>, place: &Uri) -> Response<Body> {
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
    pub(super) fn with_resource(&self, own: &str, form: &str) -> String {
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

pub(super) fn first_issuer(said: &Map<String, Value>) -> Option<String> {
    let first = said.get("authorization_servers")?.get(0)?;
    first.as_str().map(str::to_owned)
}

/// Returns true if a token for `resource` is one for `url`.
pub(super) fn is_above(resource: &str, url: &Uri) -> bool {
    let Ok(resource) = resource.parse::<Uri>() else {
        return false;
    };
    let with_end = |path: &str| format!("{}/", path.trim_end_matches('/'));
    is_same_origin(&resource, url) && with_end(url.path()).starts_with(&with_end(resource.path()))
}

/// The places where an authorization server may have its metadata.
pub(super) fn places_of(issuer: &str) -> Vec<String> {
    let Ok(url) = issuer.parse::<Uri>() else {
        return Vec::new();
    };
    let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Vec::new();
    };
    let (origin, path) = (
        format!("{scheme}://{authority}"),
        url.path().trim_end_matches('/'),
    );
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
    fn only_the_endpoints_own_url_is_replaced_in_forms() {
        let found = Metadata {
            resource: "https://a/mcp?x=1".to_owned(),
            is_of_server: true,
            of_server: None,
            of_issuer: None,
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
