//! Texts that go on as they came, where the store has failed.

use bytes::Bytes;

use super::text::{Content, Text};
use crate::content::Chunk;

/// A text as it came, without the first bytes of what is shown of it. It may go on.
pub(super) fn passing(text: Text, shown: usize) -> Vec<Chunk> {
    if !text.comes_in_chunks {
        return vec![Chunk::Part(text.into_part())];
    }
    let Content::Memory(bytes) = text.content else {
        return Vec::new();
    };
    let from = behind(&bytes, shown);
    let rest = Bytes::from(bytes).slice(from..);
    if rest.is_empty() {
        Vec::new()
    } else {
        vec![Chunk::Bytes(rest)]
    }
}

/// By how much longer the rest of a text is with replacement characters for what is no UTF-8.
pub(super) fn grows_by(text: &Text, shown: usize) -> u64 {
    let (Content::Memory(bytes), Some(whole)) = (&text.content, text.shown()) else {
        return 0;
    };
    let rest = bytes.len() - behind(bytes, shown);
    (whole.len() - shown).saturating_sub(rest) as u64
}

/// Where in `bytes` what comes behind the first `shown` bytes of what is shown of them begins: what
/// is no UTF-8 is shown as replacement characters.
pub(super) fn behind(bytes: &[u8], shown: usize) -> usize {
    let (mut at, mut seen) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().len();
        if seen + valid >= shown {
            return at + (shown - seen);
        }
        (at, seen) = (at + valid, seen + valid);
        if !chunk.invalid().is_empty() {
            (at, seen) = (
                at + chunk.invalid().len(),
                seen + char::REPLACEMENT_CHARACTER.len_utf8(),
            );
        }
    }
    at
}
