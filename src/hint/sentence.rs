//! The sentences that hints are put together from, and what each of them can say.

use serde::{Deserialize, Serialize};

/// One of the sentences of hints. [`Settings::templates`](crate::Settings::templates) replaces
/// them.
///
/// A template holds each of the sentence's [`required`](Self::required) placeholders once, may hold
/// each of the [`optional`](Self::optional) ones once, and writes braces as `{{` and `}}`.
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
    /// The location is a local file, since the store failed.
    Local,
    /// An old result was stored.
    Cleared,
    /// Old media was stored.
    ClearedMedia,
    /// An old link was taken out; the location is the link.
    ClearedLink,
    /// Old arguments were stored.
    ClearedArguments,
    /// An old result was removed without being stored.
    Gone,
    /// How to read what is stored.
    Reader,
    /// A page of whole lines.
    Page,
    /// A page of one whole line.
    PageOfOne,
    /// A page inside one line.
    PageInLine,
    /// A page behind the end.
    PageOfNothing,
    /// How to get the next page.
    Next,
    /// All matching lines.
    Matches,
    /// The first matching lines, and where to look for more.
    MoreMatches,
}

impl Sentence {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Truncated,
        Self::Joined,
        Self::Unsaved,
        Self::Interrupted,
        Self::NotUtf8,
        Self::Local,
        Self::Cleared,
        Self::ClearedMedia,
        Self::ClearedLink,
        Self::ClearedArguments,
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

    /// The placeholders that a template of the sentence must hold.
    #[must_use]
    pub fn required(self) -> &'static [&'static str] {
        self.row().1
    }

    /// The placeholders that it may hold beside those: `{tool}` is the tool's name, `{bytes}` the
    /// original's length, `{location}` where it is stored.
    #[must_use]
    pub fn optional(self) -> &'static [&'static str] {
        self.row().2
    }

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Its name, and the placeholders that a template of it must and may hold.
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
            Self::Local => ("local", &[], ALL),
            Self::Cleared => ("cleared", &["tool"], STORED),
            Self::ClearedMedia => ("cleared_media", &["mime", "tool"], STORED),
            Self::ClearedLink => ("cleared_link", &["tool"], &["location"]),
            Self::ClearedArguments => ("cleared_arguments", &["tool"], STORED),
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

/// The words of one language.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) sentence: fn(Sentence) -> &'static str,
    /// Stands in a sentence for the tool of a result that names none.
    pub(super) tool: &'static str,
    /// Stands in a sentence for a media type that is not given.
    pub(super) media: &'static str,
    /// Stands between sentences.
    pub(super) space: &'static str,
}
