//! Why nobody knows what is live.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why nobody knows what is live: a file that may name it could not be read.
#[derive(Debug)]
pub struct LiveError {
    pub(super) path: PathBuf,
    pub(super) problem: Problem,
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // File names may hold line feeds and escapes, which must not pass for lines of ours.
        let path = self.path.to_string_lossy();
        write!(
            f,
            "what is live is not known, so nothing should be swept: {} {}",
            path.escape_debug(),
            self.problem
        )
    }
}

impl std::error::Error for LiveError {
    /// What the system said.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

impl LiveError {
    /// The file or the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("can't be read")]
    Io(#[source] io::Error),
    #[error("is no text in UTF-8: unpack it, or move it out of the folder if it is no transcript")]
    NoText,
    #[error("is neither a file nor a folder: move it away")]
    NoFile,
    #[error("holds no file: name the folder that the transcripts are in")]
    Empty,
}
