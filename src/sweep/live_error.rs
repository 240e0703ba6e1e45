//! The error for transcripts that can't be read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::backend::debug_as_chain;

/// A file that may name live content could not be read, so what is live is unknown.
pub struct LiveError {
    pub(super) path: PathBuf,
    pub(super) problem: Problem,
}

debug_as_chain!(LiveError);

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // File names may hold line feeds and escapes, which must not look like lines of ours.
        let path = self.path.to_string_lossy();
        write!(
            f,
            "can't tell what is live, so nothing should be swept: {} {}",
            path.escape_debug(),
            self.problem
        )
    }
}

impl std::error::Error for LiveError {
    /// The operating system's error.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

impl LiveError {
    /// The file or folder that could not be read.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("can't be read: check that it exists, and its permissions")]
    Io(#[from] io::Error),
    #[error("is not UTF-8 text: unpack it, or move it out of the folder if it is not a transcript")]
    NoText,
    #[error("is neither a file nor a folder: move it out of the folder")]
    NoFile,
    #[error("holds no files: name the folder that holds the transcripts")]
    Empty,
}
