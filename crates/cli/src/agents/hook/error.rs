//! The error of a hook.

use std::error::Error;
use std::fmt;

/// The reason why an event that should have been changed passes unchanged.
#[derive(Debug)]
pub struct HookError {
    problem: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl HookError {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            source: None,
        }
    }

    pub(super) fn because(problem: &str, source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            problem: problem.to_owned(),
            source: Some(Box::new(source)),
        }
    }
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl Error for HookError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
