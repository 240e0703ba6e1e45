//! Tenants: the users and customers that conversations belong to.

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

use crate::gateway::credentials::{HEADERS, NamedCredential, add_credentials, credentials};
use crate::gateway::error::GatewayError;
use crate::gateway::secret::Secret;
use crate::gateway::settings::ServeSettings;
use crate::units::hex;

/// The user or customer that a request belongs to, as a safe name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tenant(String);

impl Tenant {
    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

/// The way to tell tenants apart.
#[derive(Debug)]
pub(crate) struct Tenants {
    /// Of headers and credentials, only a keyed hash is known. `None` if all requests are the user's own.
    pub(crate) key: Option<Secret>,
    /// The header that tells tenants apart, in place of the credentials. It is for this server alone.
    pub(crate) header: Option<HeaderName>,
}

/// Headers without which a request does not arrive as it was meant.
const NEEDED: [&str; 10] = [
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-version",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];

/// The name of the one user of a machine.
const USER: &str = "serve";

impl Tenants {
    pub(crate) fn new(settings: &ServeSettings) -> Result<Self, GatewayError> {
        let header = settings.tenant_header.as_ref().map(|name| {
            name.parse().map_err(|_| {
                let problem = "it is not the name of a header, such as x-team";
                GatewayError::settings("tenant_header", problem)
            })
        });
        let header: Option<HeaderName> = header.transpose()?;
        let name = header.as_ref().map(HeaderName::as_str).unwrap_or_default();
        if HEADERS.contains(&name) || NEEDED.contains(&name) {
            let problem = "HTTP or a provider needs this header, and a tenant's is not sent on: choose another, such as x-team, or leave it out to tell tenants by their keys";
            return Err(GatewayError::settings("tenant_header", problem));
        }
        match &settings.tenant_key {
            Some(key) if key.is_too_short() => {
                Err(GatewayError::settings("tenant_key", Secret::TOO_SHORT))
            }
            None if !settings.is_local() => Err(GatewayError::settings(
                "tenant_key",
                "other machines may connect, so tenants have to be kept apart: write a secret of at least 16 characters, the same for all replicas",
            )),
            None if header.is_some() => Err(GatewayError::settings(
                "tenant_header",
                "it needs `tenant_key`, with which its values are hashed",
            )),
            key => Ok(Self {
                key: key.clone(),
                header,
            }),
        }
    }

    /// The tenant of a request; `None` if the request does not say.
    pub(crate) fn of(&self, headers: &HeaderMap, query: Option<&str>) -> Option<Tenant> {
        let Some(key) = &self.key else {
            return Some(Tenant(USER.to_owned()));
        };
        let mut hash = Hmac::<Sha256>::new_from_slice(key.text().as_bytes()).ok()?;
        let credentials = match &self.header {
            Some(header) => {
                let values = headers.get_all(header).iter().map(HeaderValue::as_bytes);
                let named = values.map(|value| NamedCredential::new(header.as_str(), value));
                named.collect()
            }
            None => credentials(headers, query),
        };
        let is_known = add_credentials(&mut hash, &credentials);
        let digest = hash.finalize().into_bytes();
        is_known.then(|| Tenant(format!("t-{}", hex(&digest[..16]))))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn exposed() -> ServeSettings {
        ServeSettings {
            listen: ([0, 0, 0, 0], 1).into(),
            tenant_key: Some(Secret::from("0123456789abcdef".to_owned())),
            ..ServeSettings::default()
        }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        pairs.collect()
    }

    #[test]
    fn credentials_tell_tenants_apart_and_are_not_in_their_names() {
        let tenants = Tenants::new(&exposed()).unwrap();
        let of = |pairs: &[_]| tenants.of(&headers(pairs), None);
        let first = of(&[("x-api-key", "secret-1")]).unwrap();
        assert_eq!(of(&[("x-api-key", "secret-1")]), Some(first.clone()));
        assert_ne!(of(&[("x-api-key", "secret-2")]), Some(first.clone()));
        assert_ne!(of(&[("authorization", "secret-1")]), Some(first.clone()));
        assert!(!first.name().contains("secret"));
        assert_eq!(of(&[("x-other", "1")]), None);
        // Two users of one gateway, whose keys differ in another header or in the query.
        let both = |token| of(&[("x-api-key", "secret-1"), ("x-access-token", token)]);
        assert_ne!(both("1"), both("2"));
        let query = |query| tenants.of(&headers(&[("x-api-key", "secret-1")]), Some(query));
        assert_ne!(query("%6bey=1"), query("%6bey=2"));
        assert_ne!(query("access_token=1"), query("access_token=2"));
        assert_eq!(query("key=1"), query("%6Bey=%31"));
        let other_key = ServeSettings {
            tenant_key: Some(Secret::from("another secret of settings".to_owned())),
            ..exposed()
        };
        let others = Tenants::new(&other_key).unwrap();
        assert_ne!(
            others.of(&headers(&[("x-api-key", "secret-1")]), None),
            Some(first)
        );
        assert!(
            tenants
                .of(&HeaderMap::new(), Some("alt=sse&key=k"))
                .is_some()
        );
    }

    #[test]
    fn a_named_header_counts_alone() {
        let settings = ServeSettings {
            tenant_header: Some("X-Team".to_owned()),
            ..exposed()
        };
        let tenants = Tenants::new(&settings).unwrap();
        let of = |pairs: &[_]| tenants.of(&headers(pairs), None);
        let team = of(&[("x-team", "a"), ("x-api-key", "1")]);
        assert_eq!(team, of(&[("x-team", "a"), ("x-api-key", "2")]));
        assert_ne!(team, of(&[("x-team", "b"), ("x-api-key", "1")]));
        assert_eq!(of(&[("x-api-key", "1")]), None);
    }

    #[test]
    fn other_machines_need_a_key_and_the_own_user_does_not() {
        let without = ServeSettings {
            tenant_key: None,
            ..exposed()
        };
        assert!(
            Tenants::new(&without)
                .unwrap_err()
                .to_string()
                .contains("tenant_key")
        );
        let own = Tenants::new(&ServeSettings::default()).unwrap();
        assert_eq!(
            own.of(&HeaderMap::new(), None),
            Some(Tenant(USER.to_owned()))
        );
        assert!(!format!("{:?}", exposed()).contains("0123456789abcdef"));
    }
}
