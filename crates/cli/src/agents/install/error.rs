//! The failures of an installation.

use std::error::Error;
use std::fmt;
use std::path::Path;

use crate::failure::{Failure, chain};

/// The failure of a change, which has left the file at `path` as it was.
pub(crate) fn refused(path: &Path, problem: impl fmt::Display) -> Failure {
    Failure::new(format!("{}: {problem}", path.display())).hint("nothing was changed")
}

/// The same, because of an error.
pub(super) fn because<E: Error>(path: &Path, problem: &str) -> impl Fn(E) -> Failure {
    move |error| refused(path, format_args!("{problem}: {}", chain(&error)))
}
