//! The hosts that requests name.

use std::net::IpAddr;

use http::header::ORIGIN;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};

/// Returns true if `host`, the value of a `Host` header, names this machine by a loopback address, by
/// `localhost` or by one of the names in `known`. A web page that has bound its own name to this
/// address names another one.
#[must_use]
pub fn is_own_host(host: &str, known: &[String]) -> bool {
    authority(host).is_some_and(|host| {
        let name = bare(host.host());
        address(name).is_some_and(|ip| ip.is_loopback())
            || name.eq_ignore_ascii_case("localhost")
            || known.iter().any(|known| known.eq_ignore_ascii_case(name))
    })
}

/// The value of a `Host` header. Credentials before an `@` are not part of one.
#[must_use]
pub fn authority(host: &str) -> Option<Authority> {
    let authority = host.parse().ok();
    authority.filter(|_| !host.contains('@'))
}

/// Returns true if a request comes from no web page, or from one of the `host` that the request names. Browsers say so:
/// in `origin` if the page could do harm, and newer ones in `sec-fetch-site` in any case.
#[must_use]
pub fn is_from_own_page(headers: &HeaderMap, host: &str) -> bool {
    let is_own = |origin: &HeaderValue| {
        let origin: Option<Uri> = origin.to_str().ok().and_then(|origin| origin.parse().ok());
        origin.is_some_and(|origin| {
            let own = origin.authority().map(Authority::as_str);
            matches!(origin.scheme_str(), Some("http" | "https"))
                && own.is_some_and(|own| own.eq_ignore_ascii_case(host))
        })
    };
    let is_near = |site: &HeaderValue| matches!(site.as_bytes(), b"none" | b"same-origin");
    headers.get_all(ORIGIN).iter().all(is_own)
        && headers.get_all("sec-fetch-site").iter().all(is_near)
}

/// The address that `name`, a host without a port, is; `None` if it is a name.
#[must_use]
pub fn address(name: &str) -> Option<IpAddr> {
    bare(name).parse().ok()
}

/// A host without the brackets that addresses of IPv6 have in URLs.
fn bare(host: &str) -> &str {
    let inside = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inside.unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        let known = ["box.lan", "2001:db8::7"].map(str::to_owned);
        for host in [
            "localhost",
            "LocalHost:8787",
            "127.0.0.1:1",
            "[::1]:8787",
            "[::1]",
            "127.1.2.3",
            "Box.lan:80",
            "[2001:db8::7]:80",
        ] {
            assert!(is_own_host(host, &known), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "me@localhost",
            "localhost@evil.example",
            "localhost/..",
            "localhost, evil.example",
            "10.0.0.1",
            "",
            ":80",
            "[::2]",
            "[::1",
        ] {
            assert!(!is_own_host(host, &known), "{host}");
        }
    }

    #[test]
    fn addresses_have_brackets_or_none() {
        for name in ["::1", "[::1]", "127.0.0.1"] {
            assert!(address(name).is_some(), "{name}");
        }
        assert!(address("10.0.0.1").is_some() && !is_own_host("10.0.0.1", &[]));
        assert!(address("localhost").is_none() && is_own_host("LOCALHOST", &[]));
    }
}
