//! Options of a store, from its URL or the environment.

use std::collections::BTreeMap;
use std::str::FromStr;

use offcut::backend::BackendError;
use url::{Host, Position, Url};

use crate::error::{URL, mistake, refused};

/// Looks up an environment variable by name.
pub(super) type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

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
        &[$($crate::open::options::Known {
            name: $name,
            env: &[$($env),+],
            form: $crate::open::options::Form::$form,
        }),*]
    };
}
pub(super) use known;

/// The form that a value must have.
#[allow(dead_code, reason = "not every kind of store has options of all forms")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Becomes part of a host's name.
    Name,
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
    fn check(self, name: &'static str, value: &str) -> Result<(), BackendError> {
        let (holds, must) = match self {
            Self::Name => (
                value.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "consist of letters and digits",
            ),
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
        holds
            .then_some(())
            .ok_or_else(|| mistake(&format!("`{name}`"), must))
    }
}

fn is_graphic(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_endpoint(text: &str) -> bool {
    let is_plain = |url: Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url[Position::BeforeUsername..Position::BeforeHost].is_empty()
            && url[Position::AfterPath..].is_empty()
    };
    // Only printable, because the value is used verbatim, and other parsers are stricter than
    // `Url`.
    is_graphic(text) && Url::parse(text).is_ok_and(is_plain)
}

/// The options of a URL that have not been taken yet.
pub(super) struct Options<'e> {
    given: BTreeMap<String, String>,
    env: Env<'e>,
    /// The names of those that there are.
    known: Vec<&'static str>,
}

impl<'e> Options<'e> {
    pub(super) fn of(url: &Url, env: Env<'e>) -> Result<Self, BackendError> {
        let mut given = BTreeMap::new();
        for (name, value) in url.query_pairs() {
            let before = given.insert(name.into_owned(), value.into_owned());
            if before.is_some() {
                return Err(mistake(URL, "have each option only once"));
            }
        }
        Ok(Self {
            given,
            env,
            known: Vec::new(),
        })
    }

    pub(super) fn take(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        self.given.remove(name)
    }

    pub(super) fn parsed<T>(
        &mut self,
        name: &'static str,
        must: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, BackendError> {
        let parsed = self.take(name).map(|text| parse(&text));
        let parsed = parsed.map(|value| value.ok_or_else(|| mistake(&format!("`{name}`"), must)));
        parsed.transpose()
    }

    /// Takes and checks the options in `known`.
    pub(super) fn settings(&mut self, known: &'static [Known]) -> Result<Settings, BackendError> {
        let is_credential = |known: &Known| known.form == Form::Credential;
        let has_credentials = known
            .iter()
            .any(|known| is_credential(known) && self.given.contains_key(known.name));
        let mut settings = Vec::new();
        for known in known {
            let set = |variable: &'static str| {
                let value = (self.env)(variable).filter(|value| !value.is_empty())?;
                Some((variable, value))
            };
            let of_machine = || known.env.iter().copied().find_map(set);
            let found = match self.take(known.name) {
                Some(value) => Some((known.name, value)),
                None if has_credentials && is_credential(known) => None,
                None => of_machine(),
            };
            if let Some((name, value)) = found {
                known.form.check(name, &value)?;
                settings.push((known, value));
            }
        }
        Ok(Settings(settings))
    }

    /// Rejects options that nothing has taken.
    pub(super) fn reject_unknown(&self) -> Result<(), BackendError> {
        if self.given.is_empty() {
            return Ok(());
        }
        // Not the name: it may be a secret that lost its own.
        let known: Vec<_> = self.known.iter().map(|name| format!("`{name}`")).collect();
        let must = format!("have no unknown option: use only {}", known.join(", "));
        Err(mistake(URL, must))
    }
}

/// The checked settings, by option.
pub(super) struct Settings(Vec<(&'static Known, String)>);

impl Settings {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known.name == name);
        found.map(|(_, value)| value.as_str())
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
    ) -> Result<B, BackendError> {
        for (known, value) in &self.0 {
            let by_variable = |_| known.env[0].to_ascii_lowercase().parse();
            let key = known.name.parse().or_else(by_variable);
            builder = set(builder, key.map_err(refused)?, value.clone());
        }
        let key = "allow_http".parse().map_err(refused)?;
        Ok(set(builder, key, self.may_be_plain()?.to_string()))
    }

    /// Returns whether requests are sent without TLS, as an `http:` endpoint asks for. Fails unless
    /// that endpoint is on this machine or `allow_http` is set.
    fn may_be_plain(&self) -> Result<bool, BackendError> {
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
        let must = "be `https:`, or on this machine; set `allow_http=true` if you trust the network in between";
        Err(mistake("`endpoint`", must))
    }
}
