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
use crate::preview::text::lines::{count_lines, last_line};
use crate::preview::text::utf8::{is_utf16, text_of};

use crate::backend::content::Stored;
use crate::backend::{Backend, BackendError, Location, Memory};
use crate::hint::{Draft, Flags, Hint, Kind, Position, Prose};

pub(crate) use other_reader::{named_in, names_a_store, page_of_other};
pub use tool::ReadFileTool;

/// Minimum room for a page's content, in bytes.
pub(crate) const MIN_PAGE: usize = 200;

/// Returns true if a hint shows only stored content, so that it can be cut or removed without loss.
/// Anyone can write a text that looks like a hint.
pub(crate) fn shows_only(shown: &Hint, content: &[u8], said: HintContext<'_>) -> bool {
    match shown.kind {
        Kind::Truncated => {
            has_known_sentence(shown, content, said) && previews(shown, content, said.own)
        }
        Kind::Page { .. } | Kind::Matches => is_of_pages(shown, &readable(content), said.prose),
        // `Cleared` and `Link` show nothing.
        _ => false,
    }
}

/// Returns true if a page, or matching lines, show only lines of `content`, and say nothing but numbers besides.
fn is_of_pages(shown: &Hint, content: &[u8], prose: &Prose) -> bool {
    let words = |text: &str| -> Vec<String> {
        let is_number = |c: char| c.is_ascii_digit() || c == '+';
        let words = text.split(is_number).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let said = words(&shown.prose);
    let is_said = |prose: &Prose| {
        let mut sentences = sentences(prose).into_iter();
        sentences.any(|sentence| words(&sentence) == said)
    };
    shown.flags == Flags::default()
        && shown.bytes == content.len() as u64
        && shown
            .lines
            .is_none_or(|lines| lines == count_lines(content))
        && prose.says(is_said)
        && match shown.kind {
            Kind::Matches => matches::are_of(&shown.preview, content),
            _ => {
                // A page may begin or end inside bytes that are not UTF-8, and shows them otherwise than the whole does.
                let page = shown.preview.trim_matches('\u{fffd}');
                String::from_utf8_lossy(content).contains(page)
            }
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

/// The content that pages of `stored` are made of. What is UTF-16 is read as a whole, and kept in memory for
/// this page.
pub(crate) async fn decoded(stored: Stored) -> Result<Stored, BackendError> {
    let first = stored.read(0..FIRST).await?;
    if first.total > MAX_DECODED || !is_utf16(&first.bytes) {
        return Ok(stored);
    }
    let content = stored.read(0..first.total).await?.bytes;
    let memory = Memory::new();
    memory
        .put(&stored.key, readable(&content).into_owned().into())
        .await?;
    Ok(Stored {
        backend: Arc::new(memory),
        ..stored
    })
}

/// The parts that the sentences of a hint may be made of.
#[derive(Clone, Copy)]
pub(crate) struct HintContext<'s> {
    pub(crate) prose: &'s Prose,
    pub(crate) tool: &'s str,
    /// The reader that hints name now, if any. Older hints may name none, or another one.
    pub(crate) reader: Option<&'s str>,
    /// The preview that user code makes of a text, if it makes any.
    pub(crate) own: &'s (dyn Fn(&str) -> Option<String> + Sync),
}

/// Returns true if a hint has the size of the stored content and previews only that. Its sentence
/// is not checked.
pub(crate) fn previews(shown: &Hint, content: &[u8], own: impl Fn(&str) -> Option<String>) -> bool {
    let Some((_, text)) = texts_in(shown, content) else {
        return false;
    };
    shown.bytes == content.len() as u64
        && shown
            .lines
            .is_none_or(|lines| lines == count_lines(text_of(content).as_bytes()))
        && {
            let text = text_of(text);
            holds_only(&shown.preview, &text)
                || own(&text).as_deref() == Some(shown.preview.as_str())
        }
}

/// Returns true if the sentence of a hint for `content` is one of ours.
pub(crate) fn has_known_sentence(shown: &Hint, content: &[u8], said: HintContext<'_>) -> bool {
    let Some((parts, _)) = texts_in(shown, content) else {
        return false;
    };
    let draft = Draft {
        hint: shown.clone(),
        parts,
        ..Draft::new(shown.kind, shown.bytes, said.tool, String::new())
    };
    // An earlier process may have had another reader, or none.
    [said.reader, None, Prose::reader_in(&shown.prose)]
        .into_iter()
        .any(|reader| {
            said.prose
                .says(|prose| prose.of_hint(&draft, reader) == shown.prose)
        })
}

/// Splits stored content into the number of joined texts, 0 if it is a single text, and the bytes
/// that can be shown: all but the manifest. `None` if the hint says joined and there is no
/// manifest.
pub(crate) fn texts_in<'c>(hint: &Hint, content: &'c [u8]) -> Option<(usize, &'c [u8])> {
    if hint.flags.joined {
        joined_texts(content)
    } else {
        Some((0, content))
    }
}

/// The number of texts that were joined, and their bytes. `None` if there is no manifest of ours.
fn joined_texts(content: &[u8]) -> Option<(usize, &[u8])> {
    let (texts, manifest) = content.split_at(content.len() - last_line(content).len());
    if !manifest.starts_with(br#"{"offcut_parts":"#) {
        return None;
    }
    let manifest: serde_json::Value = serde_json::from_slice(manifest).ok()?;
    Some((manifest.get("offcut_parts")?.as_array()?.len(), texts))
}

/// Numbers in sentences and headers are at most this long.
const LARGE: u64 = 999_999_999_999;

/// An upper bound on the bytes of a page's text, not counting its content.
pub(crate) fn overhead(location: &Location, prose: &Prose) -> usize {
    let position = Position {
        line: LARGE,
        byte: LARGE,
    };
    let mut hint = Hint::new(Kind::Page { from: position }, LARGE);
    hint.lines = Some(LARGE);
    hint.location = Some(location.clone());
    let said = sentences(prose).into_iter().max_by_key(String::len);
    hint.prose = said.unwrap_or_default();
    hint.render().len() + "+99999\n".len()
}

/// All that a page or matches can say, with numbers as long as they get.
fn sentences(prose: &Prose) -> Vec<String> {
    let at = |line, byte| Position { line, byte };
    let nexts = [Some(at(LARGE + 1, LARGE)), None];
    // Lines, and nothing.
    let pages = [(at(LARGE, 0), false), (at(LARGE, 0), true)];
    let pages = pages
        .into_iter()
        .flat_map(|(from, is_empty)| nexts.map(|next| prose.of_page(from, LARGE, next, is_empty)));
    let matches = [(0, Some(at(LARGE, LARGE))), (LARGE + 1, None), (0, None)];
    let matches = matches.map(|(matches, next)| prose.of_matches(LARGE, matches, next));
    pages.chain(matches).collect()
}
