//! Options from a URL's query or from the environment.

use std::collections::BTreeMap;
#[cfg(feature = "http")]
use std::str::FromStr;
use std::time::Duration;

use url::Url;

use crate::open_error::OpenError;

/// Looks up an environment variable by name.
pub(crate) type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Options of all kinds of stores.
const COMMON: [&str; 4] = ["timeout", "retries", "backoff", "spool"];

/// The options of a URL that have not been taken yet.
pub(crate) struct Options<'e> {
    given: BTreeMap<String, String>,
    env: Env<'e>,
    known: Vec<&'static str>,
}

/// An option of one kind of store.
#[cfg(feature = "http")]
pub(crate) struct Known {
    /// Name in the URL.
    pub(crate) name: &'static str,
    /// Environment variables to use if the URL lacks the option; the first one that is set wins.
    pub(crate) env: &'static [&'static str],
    pub(crate) form: Form,
}

/// Writes a list of [`Known`], an option a line.
#[cfg(feature = "http")]
macro_rules! known {
    ($($form:ident $name:literal from $($env:literal)+;)*) => {
        &[$($crate::open::options::Known {
            name: $name,
            env: &[$($env),+],
            form: $crate::open::options::Form::$form,
        }),*]
    };
}
#[cfg(feature = "http")]
pub(crate) use known;

/// The checked settings, by option.
#[cfg(feature = "http")]
pub(crate) struct Settings(Vec<(&'static Known, String)>);

#[cfg(feature = "http")]
impl Settings {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known.name == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Returns the option `endpoint`, without a trailing slash; empty if it is not set.
    pub(crate) fn endpoint(&self) -> &str {
        self.get("endpoint")
            .unwrap_or_default()
            .trim_end_matches('/')
    }

    /// Passes each setting to `set`, and whether requests may be sent without TLS. `object_store`
    /// knows an option by the same name, or by that of its variable.
    pub(crate) fn apply<K: FromStr<Err = object_store::Error>, B>(
        &self,
        builder: B,
        set: impl Fn(B, K, String) -> B,
    ) -> Result<B, OpenError> {
        let builder = self.0.iter().try_fold(builder, |builder, (known, value)| {
            let by_variable = |_| known.env[0].to_ascii_lowercase().parse();
            let key = known.name.parse().or_else(by_variable);
            Ok(set(
                builder,
                key.map_err(OpenError::refused)?,
                value.clone(),
            ))
        })?;
        let key = "allow_http".parse().map_err(OpenError::refused)?;
        Ok(set(builder, key, may_be_plain(self)?.to_string()))
    }
}

/// The form that a value must have.
#[cfg(feature = "http")]
#[allow(dead_code, reason = "not every kind of store has options of all forms")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
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

impl<'e> Options<'e> {
    pub(crate) fn of(url: &Url, env: Env<'e>) -> Result<Self, OpenError> {
        let mut given = BTreeMap::new();
        for (name, value) in url.query_pairs() {
            if given
                .insert(name.into_owned(), value.into_owned())
                .is_some()
            {
                return Err(OpenError::Url {
                    must: "have each option only once",
                });
            }
        }
        Ok(Self {
            given,
            env,
            known: COMMON.into(),
        })
    }

    /// Returns the environment variable `name`; `None` if it is empty.
    pub(crate) fn env(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.given.remove(name)
    }

    pub(crate) fn number(&mut self, name: &'static str) -> Result<Option<u32>, OpenError> {
        let number = |text: String| {
            text.parse().map_err(|_| OpenError::Value {
                name,
                must: "be a number",
            })
        };
        self.take(name).map(number).transpose()
    }

    pub(crate) fn duration(&mut self, name: &'static str) -> Result<Option<Duration>, OpenError> {
        let must = "be a number with `ms`, `s` or `m`: `100ms`";
        self.take(name)
            .map(|text| duration(&text).ok_or(OpenError::Value { name, must }))
            .transpose()
    }

    /// Rejects options that nothing has taken.
    pub(crate) fn reject_unknown(&self) -> Result<(), OpenError> {
        match self.given.keys().next() {
            None => Ok(()),
            Some(name) => Err(OpenError::UnknownOption {
                name: if is_harmless(name) {
                    name.clone()
                } else {
                    "…".to_owned()
                },
                known: self
                    .known
                    .iter()
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// Takes and checks the options in `known`.
    #[cfg(feature = "http")]
    pub(crate) fn take_known(&mut self, known: &'static [Known]) -> Result<Settings, OpenError> {
        let has_credentials = known
            .iter()
            .any(|known| known.form == Form::Credential && self.given.contains_key(known.name));
        let mut settings = Vec::new();
        for known in known {
            self.known.push(known.name);
            let from_env = || {
                known
                    .env
                    .iter()
                    .find_map(|variable| Some((*variable, self.env(variable)?)))
            };
            let found = match self.given.get(known.name) {
                Some(value) => Some((known.name, value.clone())),
                None if has_credentials && known.form == Form::Credential => None,
                None => from_env(),
            };
            if let Some((named, value)) = found {
                check(named, known.form, &value)?;
                self.given.remove(known.name);
                settings.push((known, value));
            }
        }
        Ok(Settings(settings))
    }
}

#[cfg(feature = "http")]
fn check(name: &'static str, form: Form, value: &str) -> Result<(), OpenError> {
    let must = match form {
        Form::Word | Form::Credential
            if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            "be printable, without spaces or line breaks"
        }
        Form::Flag if !matches!(value, "true" | "false") => "be `true` or `false`",
        Form::Text if value.is_empty() => "not be empty",
        Form::Endpoint if !is_endpoint(value) => {
            "be an `http:` or `https:` URL with a host and without credentials, a query or a fragment"
        }
        _ => return Ok(()),
    };
    Err(OpenError::Value { name, must })
}

#[cfg(feature = "http")]
fn is_endpoint(text: &str) -> bool {
    // Only printable, because the value is used verbatim, and other parsers are stricter than
    // `Url`.
    let Some(url) = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic())
        .then(|| Url::parse(text).ok())
        .flatten()
    else {
        return false;
    };
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && !has_credentials
        && url.query().is_none()
        && url.fragment().is_none()
}

/// Returns whether requests are sent without TLS, as an `http:` endpoint asks for. Fails unless
/// that endpoint is on this machine or `allow_http` is set.
#[cfg(feature = "http")]
pub(crate) fn may_be_plain(settings: &Settings) -> Result<bool, OpenError> {
    let Ok(url) = Url::parse(settings.endpoint()) else {
        return Ok(false);
    };
    if url.scheme() != "http" {
        return Ok(false);
    }
    let is_here = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if is_here || settings.is_set("allow_http") {
        return Ok(true);
    }
    Err(OpenError::Value {
        name: "endpoint",
        must: "be `https:`, or on this machine; set `allow_http=true` if you trust the network in between",
    })
}

/// Returns whether `name` looks like the name of an option. Anything else may be a secret that lost
/// its name.
fn is_harmless(name: &str) -> bool {
    name.len() <= 40
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, millis) in [
            ("100ms", Some(100)),
            ("2s", Some(2_000)),
            ("3m", Some(180_000)),
            ("0s", Some(0)),
        ] {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "-1s",
            "1.5s",
            "1h",
            "1 s",
            "99999999999999999999s",
            "9999999999999999999m",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
