//! Opens a store by name, so that a child process can open it too.

use std::sync::Arc;

use offcut::backend::{Backend, Fs};

use crate::result::Result;

/// Opens the store at a URL or in a directory.
pub(crate) fn open_lightly(name: &str) -> Result<Arc<dyn Backend>> {
    #[cfg(feature = "s3-server")]
    if name.contains("://") {
        return Ok(Arc::new(offcut_object_store::Objects::open(name)?));
    }
    Ok(Arc::new(Fs::open(name)?))
}

/// Like [`open_lightly`], but content in a directory survives a crash of the machine.
pub(crate) fn open(name: &str) -> Result<Arc<dyn Backend>> {
    match name.contains("://") {
        true => open_lightly(name),
        false => Ok(Arc::new(Fs::open(name)?.durable(true))),
    }
}
