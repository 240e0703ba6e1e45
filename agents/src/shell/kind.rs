//! The shells whose lines can be rewritten.

/// A shell whose lines can be rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shell {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// The Debian Almquist shell; also for an `sh` that is not known.
    Dash,
}

impl Shell {
    /// The shell of a `program`, by the name of its file. `None` if it is none of these.
    #[must_use]
    pub fn of_program(program: &str) -> Option<Self> {
        match program.rsplit('/').next()? {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "dash" | "sh" => Some(Self::Dash),
            _ => None,
        }
    }
}
