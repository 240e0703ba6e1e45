//! Failures of a trial's files.

use std::io;
use std::path::Path;

use crate::failure::Failure;

/// A file or folder that can't be read or written.
pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    |error| {
        Failure::new(format!("{}: {error}", path.display()))
            .hint("nothing that was recorded is lost; run the command again when the cause is gone")
    }
}
