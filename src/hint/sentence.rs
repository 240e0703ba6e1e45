//! The sentences of hints, and their placeholders.

use serde::{Deserialize, Serialize};

/// A sentence in hints. `offcut::Settings::templates` replaces them.
///
/// A template contains each [`required`](Self::required) placeholder of the sentence once, and each
/// [`optional`](Self::optional) one at most once. It writes braces as `{{` and `}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sentence {
    /// A result over the limit was stored.
    Truncated,
    /// Several texts were stored as one.
    Joined,
    /// A result over the limit was not stored, and only the preview is left.
    Unsaved,
    /// The tool's stream ended with an error.
    Interrupted,
    /// The original has invalid bytes.
    NotUtf8,
    /// An old result was stored.
    Cleared,
    /// Old media was stored.
    ClearedMedia,
    /// An old link was removed; the location is the link.
    ClearedLink,
    /// Old arguments were stored.
    ClearedArguments,
    /// A long text of a user was stored.
    ClearedUserText,
    /// An old result was removed without being stored.
    Gone,
    /// The tool that reads the stored content.
    Reader,
    /// A page of whole lines.
    Page,
    /// A page of one whole line.
    PageOfOne,
    /// A page inside one line.
    PageInLine,
    /// A page past the end.
    PageOfNothing,
    /// The offset of the next page.
    Next,
    /// All matching lines.
    Matches,
    /// The first matching lines, and the offset of more.
    MoreMatches,
}

impl Sentence {
    /// All sentences.
    pub const ALL: [Self; 19] = [
        Self::Truncated,
        Self::Joined,
        Self::Unsaved,
        Self::Interrupted,
        Self::NotUtf8,
        Self::Cleared,
        Self::ClearedMedia,
        Self::ClearedLink,
        Self::ClearedArguments,
        Self::ClearedUserText,
        Self::Gone,
        Self::Reader,
        Self::Page,
        Self::PageOfOne,
        Self::PageInLine,
        Self::PageOfNothing,
        Self::Next,
        Self::Matches,
        Self::MoreMatches,
    ];

    /// Placeholders that a template of the sentence must contain.
    #[must_use]
    pub fn required(self) -> &'static [&'static str] {
        self.row().1
    }

    /// Further placeholders that it may contain: `{tool}` is the tool's name, `{bytes}` the
    /// original's length, `{location}` the original's location.
    #[must_use]
    pub fn optional(self) -> &'static [&'static str] {
        self.row().2
    }

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Its name, with the required and the optional placeholders.
    fn row(
        self,
    ) -> (
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    ) {
        const ALL: &[&str] = &["tool", "bytes", "location"];
        const STORED: &[&str] = &["bytes", "location"];
        match self {
            Self::Truncated => ("truncated", &[], ALL),
            Self::Joined => ("joined", &["parts"], ALL),
            Self::Unsaved => ("unsaved", &[], &["tool", "bytes"]),
            Self::Interrupted => ("interrupted", &["bytes"], &["tool", "location"]),
            Self::NotUtf8 => ("not_utf8", &[], ALL),
            Self::Cleared => ("cleared", &["tool"], STORED),
            Self::ClearedMedia => ("cleared_media", &["mime", "tool"], STORED),
            Self::ClearedLink => ("cleared_link", &["tool"], &["location"]),
            Self::ClearedArguments => ("cleared_arguments", &["tool"], STORED),
            Self::ClearedUserText => ("cleared_user_text", &[], STORED),
            Self::Gone => ("gone", &["tool"], &["bytes"]),
            Self::Reader => ("reader", &["reader"], ALL),
            Self::Page => ("page", &["first", "last"], &[]),
            Self::PageOfOne => ("page_of_one", &["first"], &[]),
            Self::PageInLine => ("page_in_line", &["first"], &[]),
            Self::PageOfNothing => ("page_of_nothing", &["first"], &[]),
            Self::Next => ("next", &["next"], &[]),
            Self::Matches => ("matches", &["count"], &[]),
            Self::MoreMatches => ("more_matches", &["count", "next"], &[]),
        }
    }
}

/// The vocabulary of one language.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) sentence: fn(Sentence) -> &'static str,
    /// Replaces the tool's name if a result names none.
    pub(crate) tool: &'static str,
    /// Replaces a missing media type.
    pub(crate) media: &'static str,
    /// Separator of sentences.
    pub(crate) space: &'static str,
}
