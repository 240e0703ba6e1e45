//! Secrets of the settings.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use memchr::memmem;
use rustls::crypto::ring;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use sha2::digest::Update;
use sha2::{Digest, Sha256};

use crate::units::hex;

/// A secret of the settings, which nothing shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error's own words would show the value.
        let text = String::deserialize(deserializer);
        text.map(Self)
            .map_err(|_| D::Error::custom("expected a string"))
    }
}

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
    /// Minimum length in bytes of a secret that can't be guessed.
    pub(crate) const MIN: usize = 16;
    /// The problem of a secret that could be guessed.
    pub(crate) const TOO_SHORT: &str =
        "it is too short: write at least 16 characters, such as those of `openssl rand -hex 16`";

    /// A secret that nobody can guess; `None` if the system gives no random bytes.
    pub(crate) fn random() -> Option<Self> {
        random::<16>().map(|bytes| hex(&bytes).into())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns true if it could be guessed.
    pub(crate) fn is_too_short(&self) -> bool {
        self.0.len() < Self::MIN
    }

    /// Returns true if `text` is this secret. Digests are compared, so that the time tells nothing
    /// about it.
    pub(crate) fn is(&self, text: &str) -> bool {
        Sha256::digest(text) == Sha256::digest(&self.0)
    }

    /// Returns true if this secret is anywhere in a value, in any of its [`spellings`].
    pub(crate) fn is_in(&self, value: &[u8]) -> bool {
        let is_in = |text: &Vec<u8>| memmem::find(text, self.0.as_bytes()).is_some();
        spellings(value).iter().any(is_in)
    }
}

/// A value as it is, with the escapes of URLs decoded, and its words in base64, as `Basic` has them.
pub(crate) fn spellings(value: &[u8]) -> Vec<Vec<u8>> {
    let decoded: Vec<u8> = percent_encoding::percent_decode(value).collect();
    let words = decoded.split(|byte| !byte.is_ascii_alphanumeric() && !b"+/_-".contains(byte));
    let words = words.filter(|word| !word.is_empty());
    let of_url = |byte: &u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        byte => *byte,
    };
    let words = words.map(|word| word.iter().map(of_url).collect::<Vec<u8>>());
    let mut all: Vec<Vec<u8>> = words
        .filter_map(|word| STANDARD_NO_PAD.decode(word).ok())
        .collect();
    all.extend([value.to_vec(), decoded]);
    all
}

/// Random bytes, if the system gives any.
pub(crate) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let random = ring::default_provider().secure_random;
    random.fill(&mut bytes).ok().map(|()| bytes)
}

/// Adds a field to a digest. Lengths keep apart what would otherwise run together.
pub(crate) fn add_field(digest: &mut impl Update, field: &[u8]) {
    digest.update(&(field.len() as u64).to_le_bytes());
    digest.update(field);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_wherever_it_is() {
        let secret = Secret::from("SECRET/0123+4567".to_owned());
        let is_in = |text: &str| secret.is_in(text.as_bytes());
        for text in [
            "SECRET/0123+4567",
            "Token token=\"SECRET/0123+4567\"",
            "xSECRET/0123+4567x",
            "a|SECRET/0123+4567|b",
            "/v1/SECRET%2f0123%2B4567/x",
            "Basic dTpTRUNSRVQvMDEyMys0NTY3",
            "Basic%20dTpTRUNSRVQvMDEyMys0NTY3%3D",
            "/v1/x?token=dTpTRUNSRVQvMDEyMys0NTY3&beta=true",
            "token=\"dTpTRUNSRVQvMDEyMys0NTY3\"",
        ] {
            assert!(is_in(text), "{text}");
        }
        for text in [
            "",
            "SECRET/0123+456",
            "SECRET/0123 4567",
            "SECRET%252F0123%252B4567",
            "secret/0123+4567",
        ] {
            assert!(!is_in(text), "{text}");
        }
    }
}
