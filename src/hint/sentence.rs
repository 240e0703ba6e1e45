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
        match self {
            Self::Truncated | Self::Unsaved | Self::NotUtf8 | Self::Local => &[],
            Self::Joined => &["parts"],
            Self::Interrupted => &["bytes"],
            Self::Cleared | Self::ClearedLink | Self::ClearedArguments | Self::Gone => &["tool"],
            Self::ClearedMedia => &["mime", "tool"],
            Self::Reader => &["reader"],
            Self::Page => &["first", "last"],
            Self::PageOfOne | Self::PageInLine | Self::PageOfNothing => &["first"],
            Self::Next => &["next"],
            Self::Matches => &["count"],
            Self::MoreMatches => &["count", "next"],
        }
    }

    /// The placeholders that it may hold beside those: `{tool}` is the tool's name, `{bytes}` the
    /// original's length, `{location}` where it is stored.
    #[must_use]
    pub fn optional(self) -> &'static [&'static str] {
        match self {
            Self::Truncated | Self::Joined | Self::NotUtf8 | Self::Local | Self::Reader => {
                &["tool", "bytes", "location"]
            }
            Self::Interrupted => &["tool", "location"],
            Self::Unsaved => &["tool", "bytes"],
            Self::Cleared | Self::ClearedMedia | Self::ClearedArguments => &["bytes", "location"],
            Self::Gone => &["bytes"],
            Self::ClearedLink => &["location"],
            Self::Page
            | Self::PageOfOne
            | Self::PageInLine
            | Self::PageOfNothing
            | Self::Next
            | Self::Matches
            | Self::MoreMatches => &[],
        }
    }

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Joined => "joined",
            Self::Unsaved => "unsaved",
            Self::Interrupted => "interrupted",
            Self::NotUtf8 => "not_utf8",
            Self::Local => "local",
            Self::Cleared => "cleared",
            Self::ClearedMedia => "cleared_media",
            Self::ClearedLink => "cleared_link",
            Self::ClearedArguments => "cleared_arguments",
            Self::Gone => "gone",
            Self::Reader => "reader",
            Self::Page => "page",
            Self::PageOfOne => "page_of_one",
            Self::PageInLine => "page_in_line",
            Self::PageOfNothing => "page_of_nothing",
            Self::Next => "next",
            Self::Matches => "matches",
            Self::MoreMatches => "more_matches",
        }
    }
}
