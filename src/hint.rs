//! The text that stands for stored content.
//!
//! A hint is a header, a sentence and perhaps a preview:
//!
//! ```text
//! [offcut/1 truncated 51200B/812L 64+7998 "/home/me/.offcut/trunc/call_1"] The full result is stored there; …
//! first lines
//! [… 47000B, L40-790 …]
//! last lines
//! ```
//!
//! The header is the same in every language and alone is parsed. It holds the envelope's version,
//! what happened, the original's bytes (and lines), the bytes of the sentence and of the preview,
//! and the location as a JSON string. Since lengths are in it, sentence and preview may hold
//! anything, and a text that was changed afterwards is no hint any more.

mod draft;
mod en;
mod envelope;
mod prose;
mod sentence;
mod zh;

use sentence::Words;

use crate::backend::Location;

pub(crate) use draft::Draft;
pub(crate) use prose::{Facts, MAX_NAME, Prose, WrongTemplate};
pub use sentence::Sentence;

pub use crate::text::lines::Position;

/// The language of the sentences in hints. Chosen for each instance, never for the process.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
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
    pub(crate) const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "english",
            Self::Chinese => "chinese",
        }
    }

    /// The sentence in this language, as it is.
    #[must_use]
    pub fn sentence(self, sentence: Sentence) -> &'static str {
        (self.words().sentence)(sentence)
    }

    fn words(self) -> &'static Words {
        match self {
            Self::English => &en::ENGLISH,
            Self::Chinese => &zh::CHINESE,
        }
    }
}

/// What a text that stands for stored content says.
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
    /// What happened to the original.
    pub kind: Kind,
    /// What else there is to say about it.
    pub notes: Notes,
    /// The original's length in bytes.
    pub bytes: u64,
    /// The original's lines, where that was known.
    pub lines: Option<u64>,
    /// Where the original is; `None` if it was not saved.
    pub location: Option<Location>,
    /// The sentence for the model.
    pub prose: String,
    /// What is shown of the original.
    pub preview: String,
    /// Whether the header stands before the preview or, as in streams, behind it.
    pub placement: Placement,
}

/// What happened to the original of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// It was too long when the tool returned it.
    Truncated,
    /// It was too old before a model call.
    Cleared,
    /// It is a link that was cleared; the location is the link itself.
    Link,
    /// It is stored, and the preview is a page of it.
    Page {
        /// Where the page begins.
        from: Position,
    },
    /// It is stored, and the preview is those of its lines that match a pattern.
    Matches,
}

/// Whether a hint's header comes first or last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Header, sentence, preview: results that were there as a whole.
    #[default]
    First,
    /// Preview, header, sentence: results that were shown as they came.
    Last,
}

/// What else a hint says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Notes {
    /// The store failed, and the location is a file on the machine where the agent ran.
    pub local: bool,
    /// The tool's output broke off; what came before is all there is.
    pub interrupted: bool,
    /// The original is no UTF-8; the preview has replacement characters.
    pub not_utf8: bool,
    /// The original was several texts; what is stored begins with a line that lists their lengths.
    pub joined: bool,
}
