//! The error of a hook.

use std::error::Error;

/// The reason why an event that should have been changed passes unchanged.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
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
