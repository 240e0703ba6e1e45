//! The reasons for storing content, each with its folder.

/// A reason for storing content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It was too long: `<root>/trunc/<id>`.
    Truncate,
    /// It was too old: `<root>/clear/<id>`.
    Clear,
}

impl Phase {
    /// The name of its folder.
    #[must_use]
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Truncate => "trunc",
            Self::Clear => "clear",
        }
    }
}
