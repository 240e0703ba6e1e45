//! The requests that an endpoint answers at all: those of this machine, or of those who were let in.

use crate::http::{address, is_loopback};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, HOST, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};

/// The hosts and origins that are let in.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    /// Names under which clients may address the endpoint, besides `localhost` and addresses.
    pub(super) hosts: Vec<String>,
    /// Origins of web pages that may use it.
    pub(super) origins: Vec<String>,
    /// True if the endpoint listens to this machine alone.
    pub(super) is_loopback: bool,
}

impl Access {
    /// The host that a request names, as the client wrote it, with its port.
    ///
    /// # Errors
    ///
    /// The reason for which the request is refused: it may come from a web page that has bound its own
    /// name to this address, or that has no business here.
    pub(super) fn host(&self, headers: &HeaderMap) -> Result<String, &'static str> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err("a request must have one Host header");
        };
        let host: Option<Authority> = host.to_str().ok().and_then(|host| host.parse().ok());
        let host = host.filter(|host| !host.as_str().contains('@') && self.knows(host.host()));
        let host = host.ok_or(
            "this name is not one of the endpoint's: use 127.0.0.1, or start offcut with --allow-host",
        )?;
        let is_let_in = |origin: &HeaderValue| self.is_of(origin, &host) || self.is_allowed(origin);
        if !headers.get_all(ORIGIN).iter().all(is_let_in) {
            return Err(
                "web pages of this origin have no access: start offcut with --allow-origin",
            );
        }
        Ok(host.as_str().to_owned())
    }

    /// Returns true if no web page of another site asks, as browsers say, or one that is let in.
    pub(super) fn is_near(&self, headers: &HeaderMap) -> bool {
        let is_near = |site: &HeaderValue| matches!(site.as_bytes(), b"none" | b"same-origin");
        headers.get_all("sec-fetch-site").iter().all(is_near)
            || headers
                .get(ORIGIN)
                .is_some_and(|origin| self.is_allowed(origin))
    }

    fn knows(&self, name: &str) -> bool {
        // A page can bind its name to any address, but not an address to another one.
        is_loopback(name)
            || !self.is_loopback && address(name).is_some()
            || self.hosts.iter().any(|one| one.eq_ignore_ascii_case(name))
    }

    /// Returns true for a page of the endpoint's own scheme, host and port.
    fn is_of(&self, origin: &HeaderValue, host: &Authority) -> bool {
        let origin: Option<Uri> = origin.to_str().ok().and_then(|origin| origin.parse().ok());
        let Some(origin) = origin else { return false };
        let own = |name: &str| {
            name.eq_ignore_ascii_case(host.host()) || is_loopback(name) && is_loopback(host.host())
        };
        origin.scheme_str() == Some("http")
            && origin.host().is_some_and(own)
            && origin.port_u16() == host.port_u16()
    }

    fn is_allowed(&self, origin: &HeaderValue) -> bool {
        self.origins
            .iter()
            .any(|one| one.as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
    }

    /// The headers of an answer for a page of another origin that is let in, as `asked` wants them.
    pub(super) fn for_pages(&self, asked: &HeaderMap) -> HeaderMap {
        let Some(origin) = asked.get(ORIGIN).filter(|origin| self.is_allowed(origin)) else {
            return HeaderMap::new();
        };
        let seen = HeaderValue::from_static("mcp-session-id, www-authenticate");
        let mut headers = HeaderMap::from_iter([
            (ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone()),
            (VARY, HeaderValue::from_static("origin")),
            (ACCESS_CONTROL_EXPOSE_HEADERS, seen),
        ]);
        if let Some(wanted) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
            let methods = HeaderValue::from_static("GET, POST, DELETE");
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_let_in(access: &Access, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        access.host(&headers).is_ok()
    }

    #[test]
    fn m5_names_that_a_page_has_bound_to_this_address_are_refused() {
        let mut access = Access {
            hosts: vec!["box.lan".to_owned()],
            is_loopback: true,
            ..Access::default()
        };
        for host in ["localhost:1", "127.0.0.1:1", "[::1]:1", "Box.lan"] {
            assert!(is_let_in(&access, host, None), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "me@localhost",
            "10.0.0.1",
            "",
        ] {
            assert!(!is_let_in(&access, host, None), "{host}");
        }
        access.is_loopback = false;
        assert!(is_let_in(&access, "10.0.0.1:1", None));
        assert!(!is_let_in(&access, "evil.example", None));
        let two = [(HOST, "localhost"), (HOST, "localhost")];
        let two: HeaderMap = two
            .into_iter()
            .map(|(name, value)| (name, value.parse().unwrap()))
            .collect();
        assert!(access.host(&two).is_err() && access.host(&HeaderMap::new()).is_err());
    }

    #[test]
    fn m5_pages_of_other_origins_are_refused_unless_they_are_named() {
        let access = Access {
            origins: vec!["https://app.example".to_owned()],
            is_loopback: true,
            ..Access::default()
        };
        for origin in [
            "http://localhost:1",
            "http://127.0.0.1:1",
            "https://app.example",
        ] {
            assert!(is_let_in(&access, "localhost:1", Some(origin)), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://localhost:2",
            "http://evil.example",
            "http://evil.example:1",
            "https://localhost:1",
            "ftp://localhost:1",
            "localhost:1",
            "https://app.example.evil",
        ] {
            assert!(!is_let_in(&access, "localhost:1", Some(origin)), "{origin}");
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost:1"));
            headers.insert(ORIGIN, HeaderValue::from_static("http://localhost:1"));
            assert!(access.host(&headers).is_ok());
            headers.append(ORIGIN, origin.parse().unwrap());
            assert!(access.host(&headers).is_err(), "{origin} comes second");
        }
    }

    #[test]
    fn m5_pages_of_other_sites_are_far_whether_or_not_they_name_an_origin() {
        let access = Access {
            origins: vec!["https://app.example".to_owned()],
            ..Access::default()
        };
        for (is_near, site, origin) in [
            (true, None, None),
            (true, Some("none"), None),
            (true, Some("same-origin"), None),
            (true, Some("cross-site"), Some("https://app.example")),
            (false, Some("cross-site"), None),
            (false, Some("same-site"), None),
            (false, Some("cross-site"), Some("https://evil.example")),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("sec-fetch-site", site), ("origin", origin)] {
                if let Some(value) = value {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            assert_eq!(access.is_near(&headers), is_near, "{headers:?}");
        }
    }

    #[test]
    fn only_pages_that_are_named_may_read_answers() {
        let access = Access {
            origins: vec!["https://app.example".to_owned()],
            ..Access::default()
        };
        let asked = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().unwrap());
            access.for_pages(&headers)
        };
        assert_eq!(
            asked("https://app.example")[ACCESS_CONTROL_ALLOW_ORIGIN],
            "https://app.example"
        );
        assert!(asked("http://localhost").is_empty());
    }
}
