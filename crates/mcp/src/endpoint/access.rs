//! The requests that an endpoint answers at all: those of this machine, or of those who were let in.

use http::HeaderMap;
use http::header::HOST;

use crate::http::{address, authority, is_from_own_page, is_own_host};

/// The hosts that are let in.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    /// Names under which clients may address the endpoint, besides `localhost` and addresses.
    pub(super) hosts: Vec<String>,
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
        let host = host.to_str().ok().filter(|host| self.knows(host));
        let host = host.ok_or(
            "this name is not one of the endpoint's: use 127.0.0.1, or start offcut with --allow-host",
        )?;
        if !is_from_own_page(headers, host) {
            return Err("web pages of other origins have no access");
        }
        Ok(host.to_owned())
    }

    fn knows(&self, host: &str) -> bool {
        // A page can bind its name to any address, but not an address to another one.
        let is_address = || authority(host).is_some_and(|host| address(host.host()).is_some());
        is_own_host(host, &self.hosts) || !self.is_loopback && is_address()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::ORIGIN;

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
    fn m5_pages_of_other_origins_are_refused() {
        let access = Access {
            is_loopback: true,
            ..Access::default()
        };
        for origin in ["http://localhost:1", "https://localhost:1"] {
            assert!(is_let_in(&access, "localhost:1", Some(origin)), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://localhost:2",
            "http://evil.example",
            "http://evil.example:1",
            "http://127.0.0.1:1",
            "ftp://localhost:1",
            "localhost:1",
            "https://app.example",
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
            is_loopback: true,
            ..Access::default()
        };
        for (is_near, site, origin) in [
            (true, None, None),
            (true, Some("none"), None),
            (true, Some("same-origin"), None),
            (true, Some("same-origin"), Some("http://localhost:1")),
            (false, Some("cross-site"), None),
            (false, Some("same-site"), None),
            (false, Some("cross-site"), Some("http://localhost:1")),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost:1"));
            for (name, value) in [("sec-fetch-site", site), ("origin", origin)] {
                if let Some(value) = value {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            assert_eq!(access.host(&headers).is_ok(), is_near, "{headers:?}");
        }
    }
}
