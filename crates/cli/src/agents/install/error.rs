//! The error of an installation.

use std::error::Error;
use std::path::{Path, PathBuf};

/// An installation that was not done. The file at [`path`](Self::path) is unchanged.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .path.display())]
pub struct InstallError {
    path: PathBuf,
    problem: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl InstallError {
    pub(crate) fn new(path: &Path, problem: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            problem: problem.into(),
            source: None,
        }
    }

    pub(crate) fn because(
        path: &Path,
        problem: &str,
        source: impl Error + Send + Sync + 'static,
    ) -> Self {
        Self {
            source: Some(Box::new(source)),
            ..Self::new(path, problem)
        }
    }

    /// The file that could not be changed.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
