//! The error for transcripts that can't be read.

use std::io;
use std::path::{Path, PathBuf};

use crate::backend::debug_as_chain;

/// A file that may name live content could not be read, so what is live is unknown.
// File names may hold line feeds and escapes, which must not look like lines of ours.
#[derive(thiserror::Error)]
#[error(
    "can't tell what is live, so nothing should be swept: {} can't be read",
    path.to_string_lossy().escape_debug()
)]
pub struct LiveError {
    path: PathBuf,
    source: io::Error,
}

debug_as_chain!(LiveError);

impl LiveError {
    pub(super) fn new(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self { path, source }
    }

    /// The file or folder that could not be read.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
