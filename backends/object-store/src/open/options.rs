//! Options from a URL's query or from the environment.

use std::collections::BTreeMap;
use std::time::Duration;

use url::Url;

use crate::open_error::OpenError;

/// Looks up an environment variable by name.
pub(crate) type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Options of all kinds of stores.
const COMMON: [&str; 4] = ["timeout", "retries", "backoff", "spool"];

/// The options of a URL that have not been taken yet.
pub(crate) struct Options<'e> {
    pub(super) given: BTreeMap<String, String>,
    env: Env<'e>,
    /// The names of those that there are.
    pub(super) known: Vec<&'static str>,
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
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "only stores behind a network read it")
    )]
    pub(crate) fn env(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.given.remove(name)
    }

    pub(crate) fn number(&mut self, name: &'static str) -> Result<Option<u32>, OpenError> {
        self.parsed(name, "be a number", |text| text.parse().ok())
    }

    pub(crate) fn duration(&mut self, name: &'static str) -> Result<Option<Duration>, OpenError> {
        let must = "be a number with `ms`, `s` or `m`: `100ms`";
        self.parsed(name, must, |text| humantime::parse_duration(text).ok())
    }

    fn parsed<T>(
        &mut self,
        name: &'static str,
        must: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, OpenError> {
        self.take(name)
            .map(|text| parse(&text).ok_or(OpenError::Value { name, must }))
            .transpose()
    }

    /// Rejects options that nothing has taken.
    pub(crate) fn reject_unknown(&self) -> Result<(), OpenError> {
        if self.given.is_empty() {
            return Ok(());
        }
        // Not the name: it may be a secret that lost its own.
        let known: Vec<_> = self.known.iter().map(|name| format!("`{name}`")).collect();
        let known = known.join(", ");
        Err(OpenError::UnknownOption { known })
    }
}
