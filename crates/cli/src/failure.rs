//! Errors with advice and an exit code.

use std::fmt;
use std::process::ExitCode;

use offcut::ErrorChain;

/// An error for a person: one line that describes it, and one with advice.
#[derive(Debug)]
pub(crate) struct Failure {
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

    /// Nothing is wrong with the request, but there was nothing to work on.
    pub(crate) fn partly(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: Some(hint.into()),
            code: PARTLY,
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
    #[cfg(unix)]
    pub(crate) fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn what_to_do(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Formats an error and all its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    ErrorChain(error).to_string()
}
