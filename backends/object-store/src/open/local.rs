//! `file:///directory`

use std::sync::Arc;

use object_store::local::LocalFileSystem;
use url::Url;

use super::OpenError;
use crate::builder::Builder;
use crate::objects::Objects;

/// `object_store`'s own layout in a directory, which is made if it is missing, with mode 0700 (Unix). It follows symbolic links
/// out of it, and its files can be read by all who can reach them; `offcut::backend::Fs` does neither.
pub(super) fn open(url: &Url) -> Result<Builder, OpenError> {
    let must = "name a directory by its absolute path: `file:///var/lib/agent`";
    let path = url.to_file_path().map_err(|()| OpenError::Url { must })?;
    let refused = |error: std::io::Error| OpenError::Refused { source: Box::new(error) };
    let mut directory = std::fs::DirBuilder::new();
    directory.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut directory, 0o700);
    directory.create(&path).map_err(refused)?;
    let path = path.canonicalize().map_err(refused)?;
    // Under another root, `object_store` panics where two store at the same moment.
    let shown = path.to_str().and_then(|_| Url::from_directory_path(&path).ok()).ok_or(OpenError::Url { must })?;
    let store = LocalFileSystem::new_with_prefix(&path).map_err(OpenError::refused)?.with_fsync(true);
    let mut builder = Objects::builder(Arc::new(store), shown.as_str());
    builder.origin = Some(shown.into());
    Ok(builder)
}
