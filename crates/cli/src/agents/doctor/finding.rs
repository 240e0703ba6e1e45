//! Findings about an installation.

use serde::Serialize;

/// A finding about an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its weight.
    pub level: Level,
    /// A sentence.
    pub text: String,
    /// Advice, if there is something to do.
    pub advice: Option<String>,
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something works.
    Works,
    /// Something may be worth a look.
    Note,
    /// Something does not work.
    Problem,
}

impl Level {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    pub(super) fn works(text: impl Into<String>) -> Self {
        Self {
            level: Level::Works,
            text: text.into(),
            advice: None,
        }
    }

    pub(super) fn note(text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level: Level::Note,
            text: text.into(),
            advice: Some(advice.into()),
        }
    }

    pub(super) fn problem(text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level: Level::Problem,
            ..Self::note(text, advice)
        }
    }
}
