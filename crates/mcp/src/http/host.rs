//! The hosts that requests name.

use std::net::IpAddr;

use http::uri::Authority;

/// Returns true if `host`, the value of a `Host` header, names this machine by a loopback address, by
/// `localhost` or by one of the names in `known`. A web page that has bound its own name to this
/// address names another one.
#[must_use]
pub fn is_own_host(host: &str, known: &[String]) -> bool {
    let Ok(host) = host.parse::<Authority>() else {
        return false;
    };
    let name = bare(host.host());
    // Credentials before an `@` are not part of a host.
    !host.as_str().contains('@')
        && (is_loopback(name) || known.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

/// Returns true if `name`, a host without a port, is `localhost` or a loopback address.
#[must_use]
pub fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || address(name).is_some_and(|ip| ip.is_loopback())
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
            assert!(address(name).is_some() && is_loopback(name), "{name}");
        }
        assert!(address("10.0.0.1").is_some() && !is_loopback("10.0.0.1"));
        assert!(address("localhost").is_none() && is_loopback("LOCALHOST"));
    }
}
