//! The moments at which content is stored.

use serde::Serialize;

/// A moment at which results are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// After a tool has returned. What is too long is stored as `<root>/trunc/<id>`.
    Truncate,
    /// Before the model is called. What is old is stored as `<root>/clear/<id>`.
    #[default]
    Clear,
}

impl Phase {
    /// The name of its folder.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Truncate => "trunc",
            Self::Clear => "clear",
        }
    }
}
