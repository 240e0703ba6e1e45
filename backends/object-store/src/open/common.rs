//! Options and buckets, which all stores over a network have.

use std::str::FromStr;
use std::sync::Arc;

use object_store::ObjectStore;
use url::{Host, Url};

use super::options::Options;
use crate::builder::Builder;
use crate::objects::Objects;
use crate::open_error::OpenError;

/// An option of one kind of store.
pub(super) struct Known {
    /// Name in the URL.
    pub(super) name: &'static str,
    /// Environment variables to use if the URL lacks the option; the first one that is set wins.
    pub(super) env: &'static [&'static str],
    pub(super) form: Form,
}

/// Writes a list of [`Known`], an option a line.
macro_rules! known {
    ($($form:ident $name:literal from $($env:literal)+;)*) => {
        &[$($crate::open::common::Known {
            name: $name,
            env: &[$($env),+],
            form: $crate::open::common::Form::$form,
        }),*]
    };
}
pub(super) use known;

/// The form that a value must have.
#[allow(dead_code, reason = "not every kind of store has options of all forms")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Used in headers and URLs: printable, without spaces.
    Word,
    /// Like `Word`, but part of the credentials. If one of these is in the URL, none is taken from
    /// the environment, because credentials from two sources don't fit together.
    Credential,
    /// `true` or `false`.
    Flag,
    /// A path or a document.
    Text,
    /// An `http:` or `https:` URL without a query.
    Endpoint,
}

impl Form {
    fn check(self, name: &'static str, value: &str) -> Result<(), OpenError> {
        let (holds, must) = match self {
            Self::Word | Self::Credential => (
                !value.is_empty() && is_graphic(value),
                "be printable, without spaces or line breaks",
            ),
            Self::Flag => (matches!(value, "true" | "false"), "be `true` or `false`"),
            Self::Text => (!value.is_empty(), "not be empty"),
            Self::Endpoint => (
                is_endpoint(value),
                "be an `http:` or `https:` URL with a host and without credentials, a query or a fragment",
            ),
        };
        holds.then_some(()).ok_or(OpenError::Value { name, must })
    }
}

fn is_graphic(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_endpoint(text: &str) -> bool {
    let is_plain = |url: Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    // Only printable, because the value is used verbatim, and other parsers are stricter than
    // `Url`.
    is_graphic(text) && Url::parse(text).is_ok_and(is_plain)
}

/// The checked settings, by option.
pub(super) struct Settings(Vec<(&'static Known, String)>);

impl Settings {
    /// Takes and checks the options in `known`.
    pub(super) fn take(
        options: &mut Options<'_>,
        known: &'static [Known],
    ) -> Result<Self, OpenError> {
        let has_credentials = known
            .iter()
            .any(|known| known.form == Form::Credential && options.given.contains_key(known.name));
        let mut settings = Vec::new();
        for known in known {
            options.known.push(known.name);
            let found = match options.take(known.name) {
                Some(value) => Some((known.name, value)),
                None if has_credentials && known.form == Form::Credential => None,
                None => known
                    .env
                    .iter()
                    .find_map(|variable| Some((*variable, options.env(variable)?))),
            };
            if let Some((name, value)) = found {
                known.form.check(name, &value)?;
                settings.push((known, value));
            }
        }
        Ok(Self(settings))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known.name == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the option `endpoint`, without a trailing slash; empty if it is not set.
    pub(super) fn endpoint(&self) -> &str {
        self.get("endpoint")
            .unwrap_or_default()
            .trim_end_matches('/')
    }

    /// Passes each setting to `set`, and whether requests may be sent without TLS. `object_store`
    /// knows an option by the same name, or by that of its variable.
    pub(super) fn apply<K: FromStr<Err = object_store::Error>, B>(
        &self,
        mut builder: B,
        set: impl Fn(B, K, String) -> B,
    ) -> Result<B, OpenError> {
        for (known, value) in &self.0 {
            let by_variable = |_| known.env[0].to_ascii_lowercase().parse();
            let key = known.name.parse().or_else(by_variable);
            builder = set(builder, key.map_err(OpenError::refused)?, value.clone());
        }
        let key = "allow_http".parse().map_err(OpenError::refused)?;
        Ok(set(builder, key, self.may_be_plain()?.to_string()))
    }

    /// Returns whether requests are sent without TLS, as an `http:` endpoint asks for. Fails unless
    /// that endpoint is on this machine or `allow_http` is set.
    fn may_be_plain(&self) -> Result<bool, OpenError> {
        let is_http = |url: &Url| url.scheme() == "http";
        let Some(url) = Url::parse(self.endpoint()).ok().filter(is_http) else {
            return Ok(false);
        };
        let is_here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if is_here || self.get("allow_http") == Some("true") {
            return Ok(true);
        }
        Err(OpenError::Value {
            name: "endpoint",
            must: "be `https:`, or on this machine; set `allow_http=true` if you trust the network in between",
        })
    }
}

/// The name of a bucket, or its equivalent in other stores.
pub(super) fn bucket(url: &Url) -> Result<&str, OpenError> {
    let bucket = url.host_str().unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_bucket =
        (3..=255).contains(&bucket.len()) && bucket.bytes().all(is_name) && !bucket.contains("..");
    let must =
        "name a bucket, of 3 or more letters, digits, `-`, `_` and `.`: `s3://bucket/prefix`";
    is_bucket.then_some(bucket).ok_or(OpenError::Url { must })
}

/// Begins to build over a bucket's store. `server` tells it from buckets of the same name elsewhere.
pub(super) fn in_bucket(
    url: &Url,
    server: &str,
    store: impl ObjectStore,
) -> Result<Builder, OpenError> {
    let (scheme, bucket, path) = (url.scheme(), bucket(url)?, url.path());
    let mut builder =
        Objects::builder(Arc::new(store), format!("{scheme}://{bucket}")).prefix(path);
    let path = path.trim_end_matches('/');
    builder.origin = Some(format!("{scheme} {server} {bucket}{path}"));
    Ok(builder)
}
