//! A store by the URL that settings name it by.

use std::sync::Arc;

use super::{Backend, BackendError, ErrorKind, Memory};

/// Opens the store that `url` names: `memory:` or `memory:NAME`, or a directory as a path or as `file:///path`.
///
/// This is what [`Builder::settings`](crate::Builder::settings) takes for settings that need no other stores. Object stores are
/// opened by the crate `offcut-object-store`.
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
/// The URL names no store that this crate has, or the directory can't be used: see [`Fs::open`](super::Fs::open).
pub fn open(url: &str) -> Result<Arc<dyn Backend>, BackendError> {
    let unusable = |message: String| BackendError::new(ErrorKind::Other, message);
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(Memory::new())),
        Some(("memory", name)) => {
            let named = Memory::named(name).map_err(|error| {
                unusable(format!("`{url}` has no safe name behind `memory:`: use one such as `memory:grep`"))
                    .with_source(error)
            });
            Ok(Arc::new(named?))
        }
        Some(("file", path)) => match path.strip_prefix("//") {
            Some(path) if path.starts_with('/') => directory(path),
            _ => Err(unusable(format!("`{url}` is no file URL: write `file:///absolute/path`, or the path alone"))),
        },
        Some((scheme, rest)) if rest.starts_with("//") => Err(unusable(format!(
            "`{scheme}:` stores are not part of this crate: open `{url}` with the crate offcut-object-store, or use \
             `memory:` or a path"
        ))),
        _ if url.is_empty() => Err(unusable("the backend's URL is empty: write `memory:` or a path".to_owned())),
        _ => directory(url),
    }
}

#[cfg(feature = "fs")]
fn directory(path: &str) -> Result<Arc<dyn Backend>, BackendError> {
    Ok(Arc::new(super::Fs::open(path)?))
}

#[cfg(not(feature = "fs"))]
fn directory(path: &str) -> Result<Arc<dyn Backend>, BackendError> {
    let message = format!("`{path}` is a path, which needs the feature `fs`: enable it, or use `memory:`");
    Err(BackendError::new(ErrorKind::Other, message))
}
