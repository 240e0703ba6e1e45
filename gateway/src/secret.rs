//! Secrets of the settings.

use std::fmt;

use serde::Deserialize;

/// A secret of the settings, which nothing shows.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Secret {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}
