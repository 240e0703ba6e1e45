//! The address of a server, and the headers that its user gives.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// A server's URL or a header can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The URL is not one of `http` or `https`.
    #[error("the URL must begin with http:// or https:// and name a host")]
    Url,
    /// The URL holds a user name or a password.
    #[error("the URL must not hold a user name or a password; give them in a header")]
    UserInUrl,
    /// The header's name or value is not one, or it belongs to the connection.
    #[error("this header's name or value is invalid, or it belongs to the connection")]
    Header,
    /// The certificates of the system can't be used.
    #[error("the certificates of the system can't be used")]
    Certificates(#[source] rustls::Error),
}

/// Reads a server's URL.
pub(super) fn url(url: &str) -> Result<Uri, RemoteError> {
    // A fragment is not sent.
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    let url: Uri = url.parse().map_err(|_| RemoteError::Url)?;
    let authority = url.authority().ok_or(RemoteError::Url)?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || authority.host().is_empty() {
        return Err(RemoteError::Url);
    }
    if authority.as_str().contains('@') {
        return Err(RemoteError::UserInUrl);
    }
    Ok(url)
}

/// A URL without its path and query, either of which may hold a secret.
pub(crate) fn shown(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let authority = url.authority().map_or("", |authority| authority.as_str());
    format!("{scheme}://{authority}")
}

/// Returns true if what is meant for one URL may be sent to the other.
pub(crate) fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    let is_plain = one.scheme_str() == Some("http");
    let usual = if is_plain { 80 } else { 443 };
    one.scheme() == other.scheme()
        && one.host().map(str::to_ascii_lowercase) == other.host().map(str::to_ascii_lowercase)
        && one.port_u16().unwrap_or(usual) == other.port_u16().unwrap_or(usual)
}

/// Adds a header of the user's.
pub(super) fn add(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), RemoteError> {
    let name: HeaderName = name.trim().parse().map_err(|_| RemoteError::Header)?;
    if [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING].contains(&name) {
        return Err(RemoteError::Header);
    }
    let mut value: HeaderValue =
        HeaderValue::from_bytes(value.trim().as_bytes()).map_err(|_| RemoteError::Header)?;
    value.set_sensitive(true);
    headers.append(name, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_http_and_hold_no_credentials() {
        for wrong in ["", "/mcp", "ftp://a/b", "a.b/mcp", "stdio", "http://"] {
            assert!(matches!(url(wrong), Err(RemoteError::Url)), "{wrong}");
        }
        for wrong in ["http://me@a/b", "https://me:secret@a/"] {
            let error = url(wrong).unwrap_err();
            assert!(
                matches!(error, RemoteError::UserInUrl) && !error.to_string().contains("secret")
            );
        }
        let url = url("HTTPS://A.b:8443/mcp?key=secret#there").unwrap();
        assert_eq!(shown(&url), "https://A.b:8443");
        assert_eq!(url.query(), Some("key=secret"));
    }

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        let same =
            |one: &str, other: &str| is_same_origin(&url(one).unwrap(), &url(other).unwrap());
        assert!(same("https://a/mcp", "https://A:443/mcp/?x"));
        assert!(same("http://a:80/", "http://a/b"));
        for other in ["http://a/", "https://b/", "https://a:8443/", "https://a.b/"] {
            assert!(!same("https://a/mcp", other), "{other}");
        }
    }

    #[test]
    fn headers_of_the_connection_and_line_breaks_are_refused() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("a b", "x"),
            ("", "x"),
            ("Host", "x"),
            ("content-length", "1"),
        ] {
            assert!(matches!(
                add(&mut headers, name, value),
                Err(RemoteError::Header)
            ));
        }
        let two_lines = add(&mut headers, "a", "x\r\nb: y");
        assert!(matches!(two_lines, Err(RemoteError::Header)));
        add(&mut headers, "Authorization", " Bearer secret ").unwrap();
        assert_eq!(headers["authorization"], "Bearer secret");
        assert!(!format!("{headers:?}").contains("secret"));
    }
}
