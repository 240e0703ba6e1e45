//! The error for transcripts that can't be read.

use std::io;
use std::path::{Path, PathBuf};

use crate::backend::debug_as_chain;

/// A file that may name live content could not be read, so what is live is unknown.
#[derive(thiserror::Error)]
// File names may hold line feeds and escapes, which must not look like lines of ours.
#[error(
    "can't tell what is live, so nothing should be swept: {} {problem}",
    path.to_string_lossy().escape_debug()
)]
pub struct LiveError {
    path: PathBuf,
    problem: &'static str,
    /// The operating system's error.
    pub(super) source: Option<io::Error>,
}

debug_as_chain!(LiveError);

impl LiveError {
    pub(super) fn new(path: &Path, problem: &'static str) -> Self {
        Self {
            path: path.to_owned(),
            problem,
            source: None,
        }
    }

    pub(super) fn unreadable(path: &Path, source: io::Error) -> Self {
        Self {
            source: Some(source),
            ..Self::new(
                path,
                "can't be read: check that it exists, and its permissions",
            )
        }
    }

    /// The file or folder that could not be read.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
