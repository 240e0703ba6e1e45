//! Compares hints with the content stored where they lead.

use crate::hint::{Hint, Kind};
use crate::read_back::{HintContext, has_known_sentence, previews, shows_only};

/// Returns true if a hint shows and says nothing but what it should about the content stored where it leads.
/// `is_short` is true for a hint of clearing that is believed whatever its words.
pub(crate) fn is_ours(hint: &Hint, content: &[u8], said: HintContext<'_>, is_short: bool) -> bool {
    match hint.kind {
        Kind::Cleared => {
            previews(hint, content, said.own)
                && (is_short || has_known_sentence(hint, content, said))
        }
        _ => shows_only(hint, content, said),
    }
}
