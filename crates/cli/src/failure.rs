//! Errors with advice and an exit code.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use offcut::ErrorChain;

/// An error for a person: one line that describes it, and one with advice.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

/// Exit codes, as the help lists them.
pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const PARTLY: u8 = 3;

impl Failure {
    /// Something outside this program failed: a file or a store.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            code: FAILED,
        }
    }

    /// The request can't be carried out: arguments, settings or input are wrong.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: Some(hint.into()),
            code: USAGE,
        }
    }

    /// The same failure, blamed on the settings called `origin`.
    pub(crate) fn of(mut self, origin: &str) -> Self {
        self.message = format!("{origin}: {}", self.message);
        self
    }

    /// Sets the advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the exit code.
    pub(crate) fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn what_to_do(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// Errors as failures, whose message is what went wrong, followed by the error and its causes.
pub(crate) trait OrFail<T> {
    /// Something outside this program failed.
    fn or_fail(self, what: impl fmt::Display) -> Result<T, Failure>;

    /// Something outside this program failed, and this may help.
    fn or_advise(self, what: impl fmt::Display, hint: &str) -> Result<T, Failure>;

    /// Arguments, settings or input are wrong.
    fn or_refuse(self, what: impl fmt::Display, hint: &str) -> Result<T, Failure>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> OrFail<T> for Result<T, E> {
    fn or_fail(self, what: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(format!("{what}: {}", chain(&*error.into()))))
    }

    fn or_advise(self, what: impl fmt::Display, hint: &str) -> Result<T, Failure> {
        self.or_fail(what).map_err(|failure| failure.hint(hint))
    }

    fn or_refuse(self, what: impl fmt::Display, hint: &str) -> Result<T, Failure> {
        let advised = self.or_advise(what, hint);
        advised.map_err(|failure| failure.with_code(USAGE))
    }
}

/// The exit code of a command that has left out what failed.
pub(crate) fn code_of(is_whole: bool) -> ExitCode {
    ExitCode::from(if is_whole { 0 } else { PARTLY })
}

/// Formats an error and all its causes in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    ErrorChain(error).to_string()
}
