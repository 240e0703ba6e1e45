//! Reading stored content back: bounded pages, by lines, by bytes inside long lines, by a pattern, or
//! by a query.

mod matches;
mod other_reader;
mod page;
#[cfg(feature = "query")]
mod query;
mod tool;
mod words;

use std::borrow::Cow;
use std::sync::Arc;

use crate::preview::holds_only;
use crate::preview::text::decoding::{is_utf16, text_of};
use crate::preview::text::lines::{count_lines, last_line};

use crate::backend::content::Stored;
use crate::backend::{Backend, BackendError, Location, Memory};
use crate::hint::{Flags, Hint, Kind, Position, Prose};

pub(crate) use other_reader::{named_in, names_a_store, page_of_other};
pub use tool::ReadFileTool;

/// Minimum room for a page's content, in bytes.
pub(crate) const MIN_PAGE: usize = 200;

/// Returns true if a hint has the sizes of the stored content and shows only that, so that it can be cut without loss.
/// Anyone can write a text that looks like a hint. Its sentence is not looked at. `own` is the preview that user code
/// makes of a text, if it makes any.
pub(crate) fn shows_only(
    shown: &Hint,
    content: &[u8],
    own: impl Fn(&str) -> Option<String>,
) -> bool {
    let text = text_of(content);
    let lines = || count_lines(text.as_bytes());
    let has_its_sizes =
        shown.bytes == content.len() as u64 && shown.lines.is_none_or(|shown| shown == lines());
    has_its_sizes
        && match shown.kind {
            Kind::Truncated | Kind::Cleared => texts_in(shown, content).is_some_and(|texts| {
                let text = text_of(texts);
                holds_only(&shown.preview, &text) || own(&text).as_ref() == Some(&shown.preview)
            }),
            Kind::Link => false,
            _ if shown.flags != Flags::default() => false,
            Kind::Matches => matches::are_of(&shown.preview, &readable(content)),
            // A page may begin or end inside bytes that are not UTF-8, and shows them otherwise than the whole does.
            Kind::Page { .. } => text.contains(shown.preview.trim_matches('\u{fffd}')),
        }
}

/// The bytes that pages of `content` are made of: UTF-8 in place of UTF-16.
fn readable(content: &[u8]) -> Cow<'_, [u8]> {
    if is_utf16(content) {
        Cow::Owned(text_of(content).into_owned().into_bytes())
    } else {
        Cow::Borrowed(content)
    }
}

/// Number of bytes that tell whether content is UTF-16, and the most that are decoded: pages of longer content
/// show it as it is.
const FIRST: u64 = 64;
const MAX_DECODED: u64 = 64 << 20;

/// The content that pages of `stored` are made of, and the length of what is stored in bytes. What is UTF-16 is read
/// as a whole, and kept in memory for this page.
pub(crate) async fn decoded(stored: Stored) -> Result<(Stored, u64), BackendError> {
    let first = stored.read(0..FIRST).await?;
    if first.total > MAX_DECODED || !is_utf16(&first.bytes) {
        return Ok((stored, first.total));
    }
    let content = stored.read(0..first.total).await?.bytes;
    let memory = Memory::new();
    memory
        .put(&stored.key, readable(&content).into_owned().into())
        .await?;
    let text = Stored {
        backend: Arc::new(memory),
        ..stored
    };
    Ok((text, first.total))
}

/// The bytes of stored content that can be shown: all but the manifest of joined texts. `None` if the hint says joined
/// and there is no manifest of ours.
pub(crate) fn texts_in<'c>(hint: &Hint, content: &'c [u8]) -> Option<&'c [u8]> {
    if hint.flags.joined {
        joined_texts(content)
    } else {
        Some(content)
    }
}

/// The texts before a manifest of ours; `None` if there is none.
fn joined_texts(content: &[u8]) -> Option<&[u8]> {
    let (texts, manifest) = content.split_at(content.len() - last_line(content).len());
    let is_ours = manifest.starts_with(br#"{"offcut_parts":["#);
    is_ours.then_some(texts)
}

/// Numbers in sentences and headers are at most this long.
const LARGE: u64 = 999_999_999_999;

/// An upper bound on the bytes of a page's text, not counting its content.
pub(crate) fn overhead(location: &Location, prose: &Prose) -> usize {
    let at = |line, byte| Position { line, byte };
    let mut hint = Hint::new(
        Kind::Page {
            from: at(LARGE, LARGE),
        },
        LARGE,
    );
    hint.lines = Some(LARGE);
    hint.location = Some(location.clone());
    let next = Some(at(LARGE + 1, LARGE));
    // Lines, and nothing.
    let pages = [false, true].map(|is_empty| prose.of_page(at(LARGE, 0), LARGE, next, is_empty));
    let matches = [next, None].map(|next| prose.of_matches(LARGE, LARGE + 1, next));
    let said = pages.into_iter().chain(matches).max_by_key(String::len);
    hint.prose = said.unwrap_or_default();
    hint.render().len() + "+99999\n".len()
}
