//! Paths in a shell's notation for home directories.

use std::path::Path;

use crate::backend::{BackendError, ErrorKind};

/// Refuses paths that begin with `~`, which would make a directory of that name.
pub(crate) fn refuse_home(path: &Path) -> Result<(), BackendError> {
    if !path.as_os_str().as_encoded_bytes().starts_with(b"~") {
        return Ok(());
    }
    Err(BackendError::new(
        ErrorKind::Other,
        "only shells expand a `~`, and none has: write the whole path, or `./~` for a directory of \
         that name",
    ))
}
