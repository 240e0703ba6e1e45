//! Stores at `file:///directory` URLs.

use std::sync::Arc;

use object_store::local::LocalFileSystem;
use url::Url;

use crate::builder::Builder;
use crate::objects::Objects;
use crate::open_error::OpenError;

/// Opens a directory with `object_store`'s own layout. Unlike `offcut::backend::Fs`, the store follows
/// symbolic links out of the directory, and its files are readable by everyone who can reach them.
pub(super) fn open(url: &Url) -> Result<Builder, OpenError> {
    let must =
        "name an existing directory by its absolute path, without `%`: `file:///var/lib/agent`";
    let is_plain = !url.path().contains('%');
    let path = url
        .to_file_path()
        .ok()
        .filter(|path| is_plain && path.is_dir());
    // Free of links: with any other root, `object_store` panics if two calls store at the same time.
    let path = path.and_then(|path| path.canonicalize().ok());
    let shown = path
        .as_ref()
        .and_then(|path| Url::from_directory_path(path).ok());
    let (Some(path), Some(shown)) = (path, shown) else {
        return Err(OpenError::Url { must });
    };
    let store = LocalFileSystem::new_with_prefix(path).map_err(OpenError::refused)?;
    let mut builder = Objects::builder(Arc::new(store.with_fsync(true)), shown.as_str());
    builder.origin = Some(shown.into());
    Ok(builder)
}
