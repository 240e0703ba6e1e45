//! Hints, their kinds and their languages.

use serde::{Deserialize, Serialize};

use crate::backend::Location;
use crate::preview::text::lines::Position;

use crate::hint::sentence::Sentence;

/// Language of the sentences in hints. Set for each instance, never for the process.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Language {
    /// English.
    #[default]
    #[serde(alias = "en")]
    English,
    /// Simplified Chinese.
    #[serde(alias = "zh")]
    Chinese,
}

impl Language {
    /// All languages, in the order of their declaration.
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "english",
            Self::Chinese => "chinese",
        }
    }

    /// Returns the built-in sentence in this language.
    #[must_use]
    pub fn sentence(self, sentence: Sentence) -> &'static str {
        sentence.row().words[self as usize]
    }
}

/// The contents of a hint.
///
/// ```
/// use offcut::hint::{Hint, Kind};
/// let text = "[offcut/1 cleared 51200B/812L 4 \"/tmp/a/clear/call_1\"] Gone";
/// let hint = Hint::parse(text).expect("a hint");
/// assert_eq!((hint.kind, hint.bytes, hint.lines), (Kind::Cleared, 51_200, Some(812)));
/// assert_eq!(hint.render(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// The kind of hint.
    pub kind: Kind,
    /// Further facts about the original.
    pub flags: Flags,
    /// The original's length in bytes.
    pub bytes: u64,
    /// Number of lines of the original, if known.
    pub lines: Option<u64>,
    /// The original's location; `None` if it was not saved.
    pub location: Option<Location>,
    /// The sentence for the model.
    pub prose: String,
    /// The preview of the original.
    pub preview: String,
}

/// The kinds of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The result was too long when its tool returned.
    Truncated,
    /// The content was too old before a model call.
    Cleared,
    /// A link was cleared; the location is the link itself.
    Link,
    /// The original is stored, and the preview is a page of it.
    Page {
        /// The start of the page.
        from: Position,
    },
    /// The original is stored, and the preview has the lines that match a pattern.
    Matches,
}

/// Circumstances that a hint reports, in its header and in sentences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// The tool's output broke off; the original is the part before that.
    pub interrupted: bool,
    /// The original is not UTF-8; the preview has replacement characters.
    pub not_utf8: bool,
    /// The original was several texts; the stored content ends with a line that lists their
    /// lengths.
    pub joined: bool,
}
