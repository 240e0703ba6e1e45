//! Names that are safe as paths.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::backend::error::debug_as_chain;

/// The name of stored content under a backend's root: `trunc/call_1`, `agent-7/clear/call_2-args`.
///
/// One to 16 segments, joined by `/`. Each has 1 to 240 ASCII letters, digits, `.`, `_` and `-`,
/// does not begin or end with `.`, and is not a device name on Windows. At most 900 bytes in all.
/// So a key is a safe relative path on every file system and a safe object name in every store, and
/// leaves room for a suffix such as `.tmp`. Text from a model becomes a path only by becoming a key first.
///
/// ```
/// use offcut::backend::Key;
/// assert_eq!(Key::new("trunc/call_1")?.as_str(), "trunc/call_1");
/// assert!(Key::new("../etc/passwd").is_err());
/// # Ok::<(), offcut::backend::KeyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

/// The length, in bytes, of the digests in names.
pub(crate) const DIGEST_LENGTH: usize = 16;

const MAX_KEY: usize = 900;

impl Key {
    /// Maximum length of a segment in bytes.
    pub const MAX_SEGMENT: usize = 240;
    /// Maximum number of segments.
    pub const MAX_SEGMENTS: usize = 16;

    /// Checks `path` and turns it into a key.
    ///
    /// # Errors
    ///
    /// `path` is not a safe relative path as described for the type.
    pub fn new(path: impl Into<String>) -> Result<Self, KeyError> {
        let path = path.into();
        let safe = path.len() <= MAX_KEY
            && path.split('/').count() <= Self::MAX_SEGMENTS
            && path.split('/').all(is_safe_segment);
        if safe {
            Ok(Self(path))
        } else {
            Err(KeyError { length: path.len() })
        }
    }

    /// Returns true if the key is derived from the content with this SHA-256: its last segment,
    /// apart from a file extension, is the first 16 hexadecimal digits of the digest, or ends in `-` and these.
    ///
    /// ```
    /// # use offcut::backend::Key;
    /// use sha2::{Digest, Sha256};
    /// let sha256 = Sha256::digest(b"").into();
    /// assert!(Key::new("trunc/call_1-e3b0c44298fc1c14")?.is_addressed_by(&sha256));
    /// assert!(!Key::new("trunc/call_1")?.is_addressed_by(&sha256));
    /// # Ok::<(), offcut::backend::KeyError>(())
    /// ```
    #[must_use]
    pub fn is_addressed_by(&self, sha256: &[u8; 32]) -> bool {
        let name = self.0.rsplit('/').next().unwrap_or_default();
        // An id may contain a dot.
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let digest = digest_from_sha256(sha256);
        let ends_in_it = |name: &str| {
            name.strip_suffix(&digest)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('-'))
        };
        ends_in_it(name) || ends_in_it(stem)
    }

    /// The path relative to the backend's root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A path that is not safe as a key. The message leaves it out, since it may be hostile.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a path of {length} bytes is not a safe key: use 1 to 16 segments of ASCII letters, digits, '.', '_' and '-', \
     none that begins or ends with '.', at most 900 bytes in all"
)]
#[non_exhaustive]
pub struct KeyError {
    /// The path's length in bytes.
    pub length: usize,
}

debug_as_chain!(KeyError);

/// Returns true if `name` can be a segment of a [`Key`].
pub(crate) fn is_safe_segment(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let is_device = match stem.to_ascii_lowercase().as_bytes() {
        b"con" | b"prn" | b"aux" | b"nul" => true,
        [b'c', b'o', b'm', number] | [b'l', b'p', b't', number] => number.is_ascii_digit(),
        _ => false,
    };
    !name.is_empty()
        && name.len() <= Key::MAX_SEGMENT
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !is_device
}

/// Digest of `content` in 16 hexadecimal digits: the first 64 bits of its SHA-256.
pub(crate) fn digest(content: &[u8]) -> String {
    digest_from_sha256(&Sha256::digest(content).into())
}

/// Digest of the content with this SHA-256, as [`digest`] gives it.
pub(crate) fn digest_from_sha256(sha256: &[u8; 32]) -> String {
    sha256[..DIGEST_LENGTH / 2]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l6_hostile_names_are_no_keys() {
        let long = "a".repeat(241);
        let deep = ["a"; 17].join("/");
        for hostile in [
            "", "/", "a/", "/a", "a//b", ".", "..", "../a", "a/../b", "a/./b", ".hidden", "a.",
            "a b", "a\0b", "a\\b", "c:", "呼叫", "con", "NUL.txt", "com1", "lpt9.log", "a\n", "~",
            "%2e%2e", &long, &deep,
        ] {
            assert!(Key::new(hostile).is_err(), "{hostile:?} was taken");
        }
    }

    #[test]
    fn ordinary_names_are_keys() {
        for fine in [
            "trunc/call_1",
            "a",
            "toolu_01A09q90qw90lq917835lq9",
            "s-1/clear/call_1-args",
            "x.png",
            "console",
            "com10",
        ] {
            assert_eq!(Key::new(fine).unwrap().as_str(), fine);
        }
    }

    #[test]
    fn keys_that_name_their_content() {
        let empty = Sha256::digest(b"").into();
        for key in [
            "trunc/e3b0c44298fc1c14",
            "a-e3b0c44298fc1c14",
            "clear/call_1-2-e3b0c44298fc1c14.png",
            "trunc/build.log-e3b0c44298fc1c14",
        ] {
            assert!(Key::new(key).unwrap().is_addressed_by(&empty), "{key}");
        }
        for key in [
            "xe3b0c44298fc1c14",
            "e3b0c44298fc1c14/a",
            "a-e3b0c44298fc1c14-args",
            "a-e3b0c44298fc1c1",
        ] {
            assert!(!Key::new(key).unwrap().is_addressed_by(&empty), "{key}");
        }
    }

    #[test]
    fn digests_are_the_head_of_sha_256() {
        assert_eq!(digest(b""), "e3b0c44298fc1c14");
        assert_eq!(digest(b"").len(), DIGEST_LENGTH);
    }
}
