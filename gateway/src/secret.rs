//! Secrets of the settings.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::HeaderMap;
use serde::Deserialize;
use sha2::{Digest, Sha256};

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
    /// The problem of a secret that could be guessed.
    pub(crate) const TOO_SHORT: &str =
        "it is too short: write at least 16 characters, such as those of `openssl rand -hex 16`";

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns true if it could be guessed.
    pub(crate) fn is_too_short(&self) -> bool {
        self.0.len() < 16
    }

    /// Returns true if `text` is this secret. Digests are compared, so that the time tells nothing
    /// about it.
    pub(crate) fn is(&self, text: &str) -> bool {
        Sha256::digest(text) == Sha256::digest(&self.0)
    }
}

/// The words in which a request's headers and query may hold a secret, however they spell it.
pub(crate) fn words(headers: &HeaderMap, query: Option<&str>) -> Vec<String> {
    let is_between = |c: char| c.is_whitespace() || "=:;,&\"'".contains(c);
    let values = headers.values().map(http::HeaderValue::as_bytes);
    let mut words = Vec::new();
    for value in values.chain(query.map(str::as_bytes)) {
        let text = percent_encoding::percent_decode(value).decode_utf8_lossy();
        for word in text.split(is_between).filter(|word| !word.is_empty()) {
            // The credentials of `Basic`.
            if let Ok(pair) = STANDARD_NO_PAD.decode(word.trim_end_matches('=')) {
                let pair = String::from_utf8_lossy(&pair);
                words.extend(pair.split(':').map(str::to_owned));
            }
            words.push(word.to_owned());
        }
    }
    words
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
