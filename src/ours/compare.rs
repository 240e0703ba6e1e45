//! Compares hints with the content stored where they lead.

use crate::hint::{Hint, Kind};
use crate::read_back::{HintContext, has_known_sentence, previews, shows_only};

/// The true nature of an apparent hint, once compared with the stored content.
pub(crate) enum HintVerdict {
    /// Ours: it shows and says nothing else.
    Ours,
    /// It shows nothing else, but in words that are not ours.
    Reworded,
    /// It shows something else.
    Imitation,
}

/// Compares a hint with the content stored where it leads. `is_short` is true for a hint of
/// clearing that is believed whatever its words.
pub(crate) fn judge(
    hint: &Hint,
    content: &[u8],
    said: HintContext<'_>,
    is_short: bool,
) -> HintVerdict {
    let shows_the_same = || previews(hint, content, said.own);
    let is_ours = match hint.kind {
        Kind::Cleared => shows_the_same() && (is_short || has_known_sentence(hint, content, said)),
        _ => shows_only(hint, content, said),
    };
    if is_ours {
        HintVerdict::Ours
    } else if shows_the_same() {
        HintVerdict::Reworded
    } else {
        HintVerdict::Imitation
    }
}
