//! Findings about an installation.

/// A finding about an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its weight.
    pub level: Level,
    /// A sentence.
    pub text: String,
    /// Advice, if there is something to do.
    pub advice: Option<String>,
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Something works.
    Works,
    /// Something may be worth a look.
    Note,
    /// Something does not work.
    Problem,
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
