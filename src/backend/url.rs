//! URLs of stores in settings.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::backend::{Backend, BackendError, ErrorKind, Memory};

/// URL of a store in settings: `memory:NAME`, the path of a directory, `s3://bucket/prefix`.
///
/// A relative path begins in the working directory of the process that opens it.
///
/// `Display` and `Debug` hide options, and everything after the scheme if a user or a password may be
/// in it. All code that shows a store's URL to a person, a model or a log must use this type.
/// [`as_str`](Self::as_str) and `Serialize` give the complete URL.
///
/// ```
/// use offcut::backend::StoreUrl;
///
/// let url = StoreUrl::from("s3://bucket/agents?secret_access_key=abc&region=eu");
/// assert_eq!(url.to_string(), "s3://bucket/agents?…");
/// assert_eq!(StoreUrl::from("s3://me:abc@bucket").to_string(), "s3:…");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// The URL as written, secrets included, for opening the store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory of a path. `None` for URLs and for paths that [`open`] refuses.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        let is_directory = split_scheme(&self.0).is_none() && is_path(&self.0);
        // A path in a shell's notation.
        (is_directory && !self.0.starts_with('~')).then(|| Path::new(&self.0))
    }
}

/// Splits off the scheme. A single letter is a Windows drive, not a scheme.
fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.trim_start().split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    is_scheme.then_some((scheme, rest))
}

/// Returns true if text without a scheme is a path. A URL that lost its colon or its scheme would make a
/// directory that is named after its secrets.
fn is_path(text: &str) -> bool {
    let is_word = |before: &str| !before.is_empty() && !before.contains(['/', '.']);
    let has_scheme = text
        .split_once("//")
        .is_some_and(|(before, _)| is_word(before));
    !text.is_empty() && !text.contains('?') && !has_scheme
}

/// People paste secrets that contain `/`, `?` or `@` without encoding them, and forget a colon or an `@`. So
/// anything ambiguous is hidden.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = split_scheme(&self.0).map_or(&*self.0, |(_, rest)| rest);
        let scheme = &self.0[..self.0.len() - rest.len()];
        let (head, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let has_user = rest.contains('@');
        let host = rest.strip_prefix("//").unwrap_or(rest).split('/').next();
        let is_hidden = if scheme.is_empty() {
            has_user && rest.contains(':') || host.is_some_and(|host| host.contains('@'))
        } else {
            has_user || has_password(head)
        };
        if is_hidden {
            return write!(f, "{scheme}…");
        }
        let mark = tail.get(..1).map(|mark| format!("{mark}…"));
        write!(f, "{scheme}{head}{}", mark.unwrap_or_default())
    }
}

/// Returns true if a `:` does not begin a port.
fn has_password(head: &str) -> bool {
    head.split(':').skip(1).any(|after| {
        let port = after.split('/').next().unwrap_or_default();
        port.len() > 5 || !port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl From<&str> for StoreUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl From<String> for StoreUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

/// Opens the store at `url`: `memory:` or `memory:NAME`, or the path of a directory.
///
/// Pass it to `offcut::Builder::settings` if the settings name no other kinds
/// of stores. The crate `offcut-object-store` opens object stores.
///
/// ```
/// use offcut::backend::open;
///
/// assert!(open("memory:grep").is_ok());
/// let error = open("s3://bucket/prefix").unwrap_err();
/// assert!(error.to_string().contains("offcut-object-store"), "{error}");
/// ```
///
/// # Errors
///
/// This crate has no store for the URL, or the directory can't be used; see `Fs::open`. The error
/// hides secrets as [`StoreUrl`] does.
pub fn open(url: &str) -> Result<Arc<dyn Backend>, BackendError> {
    let shown = StoreUrl::from(url);
    let why = match split_scheme(url) {
        Some(("memory", "")) => return Ok(Arc::new(Memory::new())),
        Some(("memory", name)) => match Memory::named(name) {
            Ok(named) => return Ok(Arc::new(named)),
            Err(error) => {
                let why = format!(
                    "`{shown}` needs a safe name after `memory:`: use one such as `memory:grep`"
                );
                return Err(BackendError::new(ErrorKind::Other, why).with_source(error));
            }
        },
        None if is_path(url) => return directory(url),
        Some((scheme, rest)) if scheme != "file" && rest.starts_with("//") => format!(
            "`{scheme}:` stores are not part of this crate: open `{shown}` with the crate offcut-object-store, or use \
             `memory:` or a path"
        ),
        _ => format!(
            "`{shown}` is neither a store's URL nor a path: write `memory:`, `s3://bucket/prefix` with its two slashes, or a \
             path without `?`, which begins with `./` if it looks like a URL"
        ),
    };
    Err(BackendError::new(ErrorKind::Other, why))
}

#[cfg(feature = "fs")]
fn directory(path: &str) -> Result<Arc<dyn Backend>, BackendError> {
    Ok(Arc::new(crate::backend::Fs::open(path)?))
}

#[cfg(not(feature = "fs"))]
fn directory(path: &str) -> Result<Arc<dyn Backend>, BackendError> {
    let path = StoreUrl::from(path);
    let message =
        format!("`{path}` is a path, which needs the feature `fs`: enable it, or use `memory:`");
    Err(BackendError::new(ErrorKind::Other, message))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_oneof};
    use proptest::{prop_assert, proptest};

    use super::*;

    fn shown(url: &str) -> String {
        StoreUrl::from(url).to_string()
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (url, expected) in [
            ("memory:", "memory:"),
            ("memory:grep", "memory:grep"),
            (".offcut", ".offcut"),
            ("/var/lib/me@work/store", "/var/lib/me@work/store"),
            ("C:\\Users\\me", "C:\\Users\\me"),
            ("file:///var/lib/agent", "file:///var/lib/agent"),
            ("file:///var/me@work", "file:…"),
            ("file://me:pass@host/x", "file:…"),
            ("s3://bucket/agents/a-1", "s3://bucket/agents/a-1"),
            ("http://host:9000/x", "http://host:9000/x"),
            (
                "s3://bucket/p?region=eu&secret_access_key=abc#x",
                "s3://bucket/p?…",
            ),
            ("s3://bucket?abc", "s3://bucket?…"),
            ("s3://bucket?ABC=def", "s3://bucket?…"),
            ("s3://bucket?endpoint=http://me:pass@host", "s3:…"),
            ("s3://bucket?endpoint=http://host:9000", "s3://bucket?…"),
            ("s3://me@bucket", "s3:…"),
            ("s3://me:p/a?s@s@bucket/p", "s3:…"),
            ("s3://me:pass/bucket", "s3:…"),
            ("s3:me:pass@bucket", "s3:…"),
            ("s3//me:pass@bucket/p", "…"),
            ("s3:/bucket?token=abc", "s3:/bucket?…"),
            ("agents?token=abc", "agents?…"),
            ("", ""),
        ] {
            assert_eq!(shown(url), expected, "{url}");
            assert_eq!(shown(expected), expected, "what is shown is shown as it is");
        }
    }

    proptest! {
        /// A secret of any characters, anywhere that people put one.
        #[test]
        fn no_secret_is_shown(
            secret in "SECRET[ -~]{0,8}SECRET",
            place in 0..6_usize,
            user in prop_oneof!["[a-z]{1,4}:", "[a-z]{1,4}:[a-z0-9/+=]{1,9}"],
            scheme in prop_oneof!["s3", "gs", "az", "memory", "https"].prop_map(|scheme: String| scheme),
            tail in any::<bool>(),
        ) {
            let tail = if tail { "?timeout=1s" } else { "" };
            let url = match place {
                0 => format!("{scheme}://{user}{secret}@bucket/p{tail}"),
                1 => format!("{scheme}://bucket/p?token={secret}"),
                2 => format!("{scheme}://bucket/p?timeout=1s&token={secret}"),
                3 => format!("{scheme}://bucket/p?{secret}"),
                4 => format!("{scheme}:/bucket/p?token={secret}"),
                _ => format!("{scheme}://bucket/p#{secret}"),
            };
            let shown = shown(&url);
            prop_assert!(!shown.contains("SECRET"), "{url}: {shown}");
        }
    }
}
