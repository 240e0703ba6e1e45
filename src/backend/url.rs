//! URLs of stores in settings.

mod pieces;
mod shown;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use pieces::{has_options, is_plain, split_scheme};

use crate::backend::home::refuse_home;
use crate::backend::{Backend, BackendError, ErrorKind, Memory};

/// URL of a store in settings: `memory:NAME`, a directory as a path or as `file:///path`,
/// `s3://bucket/prefix`.
///
/// A relative path begins in the working directory of the process that opens it.
///
/// `Display` and `Debug` hide possible secrets: user, password and options. All code that
/// shows a store's URL to a person, a model or a log must use this type. [`as_str`](Self::as_str)
/// and `Serialize` give the complete URL.
///
/// ```
/// use offcut::backend::StoreUrl;
///
/// let url = StoreUrl::from("s3://bucket/agents?secret_access_key=abc&region=eu");
/// assert_eq!(url.to_string(), "s3://bucket/agents?…");
/// assert_eq!(StoreUrl::from("s3://me:abc@bucket").to_string(), "s3://…@bucket");
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

    /// The directory of a path or of a `file:` URL. `None` for other URLs and for those that
    /// [`open`] refuses.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        match self.kind() {
            Ok(Kind::Directory(path)) => Some(Path::new(path)),
            _ => None,
        }
    }

    /// Returns true if URL parsers can't change the path's meaning. They turn `/../x` into `/x` and
    /// `\` into `/`, and would thus open a place other than the one written.
    ///
    /// False for a URL whose path has a segment `.` or `..`, an empty segment, a `\`, or percent-encoded dots,
    /// slashes, percent signs or control characters. False also for any URL with control characters or surrounding white
    /// space. True for a path without a scheme, which may be relative.
    ///
    /// ```
    /// use offcut::backend::StoreUrl;
    ///
    /// assert!(StoreUrl::from("s3://bucket/a/b").has_plain_path());
    /// assert!(!StoreUrl::from("s3://bucket/a/%2e%2e/b").has_plain_path());
    /// ```
    #[must_use]
    pub fn has_plain_path(&self) -> bool {
        let Some((_, rest)) = split_scheme(&self.0) else {
            return true;
        };
        if self.0.trim() != self.0 || self.0.contains(char::is_control) {
            return false;
        }
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let path = match rest.strip_prefix("//") {
            Some(rest) => rest.split_once('/').map_or("", |(_, path)| path),
            None => rest.strip_prefix('/').unwrap_or(rest),
        };
        let mut segments = path.strip_suffix('/').unwrap_or(path).split('/');
        path.is_empty() || !rest.contains('\\') && segments.all(is_plain)
    }

    fn kind(&self) -> Result<Kind<'_>, BackendError> {
        let unusable = |message: String| BackendError::new(ErrorKind::Other, message);
        let url = self.as_str();
        if url.is_empty() {
            return Err(unusable(
                "the backend's URL is empty: write `memory:` or a path".to_owned(),
            ));
        }
        let Some((scheme, rest)) = split_scheme(url) else {
            let before = url.split_once("//").map_or("", |(before, _)| before);
            return if SCHEMES.contains(&before) {
                Err(unusable(format!(
                    "`{self}` is neither a URL nor a path: write a colon after the scheme, as in `s3://bucket/prefix`, or \
                     begin with `./` for a directory of that name"
                )))
            } else if has_options(url) {
                Err(unusable(format!(
                    "`{self}` is a path with options, which only URLs of object stores have: leave them out, or write \
                     `s3://bucket/prefix?…`; `Fs::open` takes any path"
                )))
            } else {
                refuse_home(Path::new(url))?;
                Ok(Kind::Directory(url))
            };
        };
        match (scheme, rest.strip_prefix("//")) {
            ("memory", _) => Ok(Kind::Memory(rest)),
            ("file", Some(path)) if path.starts_with('/') && !path.contains(['?', '#', '%']) => {
                if self.has_plain_path() {
                    Ok(Kind::Directory(path))
                } else {
                    Err(unusable(format!(
                        "`{self}` has `.`, `..`, `\\`, an empty segment or control characters in its path: write the \
                         absolute path of the directory without these"
                    )))
                }
            }
            ("file", _) => Err(unusable(format!(
                "`{self}` is not a usable file URL: write `file:///absolute/path` without options and `%`, or the path alone"
            ))),
            (_, Some(_)) => Err(unusable(format!(
                "`{scheme}:` stores are not part of this crate: open `{self}` with the crate offcut-object-store, or use \
                 `memory:` or a path"
            ))),
            (_, None) => Err(unusable(format!(
                "`{self}` is neither a URL nor a path: write two slashes after the scheme, as in `s3://bucket/prefix`, or \
                 begin with `./` for a directory of that name"
            ))),
        }
    }
}

/// Schemes, which stand before `//` where their colon was forgotten.
const SCHEMES: [&str; 9] = [
    "abfs", "az", "azure", "file", "gs", "http", "https", "memory", "s3",
];

/// A URL that this crate can open.
enum Kind<'u> {
    /// The name of a store in memory.
    Memory(&'u str),
    Directory(&'u str),
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown::shown(&self.0))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&shown::shown(&self.0), f)
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

/// Opens the store at `url`: `memory:` or `memory:NAME`, or a directory as a path or as
/// `file:///path`.
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
/// This crate has no store for the URL, its path is [not plain](StoreUrl::has_plain_path), or the
/// directory can't be used; see `Fs::open`. The error hides secrets as
/// [`StoreUrl`] does.
pub fn open(url: &str) -> Result<Arc<dyn Backend>, BackendError> {
    let url = StoreUrl::from(url);
    match url.kind()? {
        Kind::Memory("") => Ok(Arc::new(Memory::new())),
        Kind::Memory(name) => match Memory::named(name) {
            Ok(named) => Ok(Arc::new(named)),
            Err(error) => {
                let message = format!(
                    "`{url}` needs a safe name after `memory:`: use one such as `memory:grep`"
                );
                Err(BackendError::new(ErrorKind::Other, message).with_source(error))
            }
        },
        Kind::Directory(path) => directory(path),
    }
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
