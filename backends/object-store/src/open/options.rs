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
        self.parsed(name, must, duration)
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
