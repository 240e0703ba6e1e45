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

use crate::hint::{Facts, Prose};
use crate::preview::holds_only;
use crate::preview::text::lines::{count_lines, last_line};
use crate::preview::text::utf8::{is_utf16, text_of};

use crate::backend::content::Stored;
use crate::backend::{Backend, BackendError, Location, Memory};
use crate::hint::{Flags, Hint, Kind, Position};
use crate::session::Session;

pub(crate) use other_reader::{named_in, names_a_store, page_of_other};
pub use tool::ReadFileTool;

/// Minimum room for a page's content, in bytes.
pub(crate) const MIN_PAGE: usize = 200;
/// Content longer than this, in bytes, does not have its lines counted for each page.
const MAX_COUNTED: u64 = 8 << 20;

/// Returns true if a hint shows only stored content, so that it can be cut or removed without loss.
/// Anyone can write a text that looks like a hint.
pub(crate) fn shows_only(shown: &Hint, content: &[u8], said: HintContext<'_>) -> bool {
    match shown.kind {
        Kind::Truncated => {
            has_known_sentence(shown, content, said) && previews(shown, content, said.own)
        }
        // Pages and matches have no flags.
        _ if shown.flags != Flags::default() => false,
        Kind::Page { from } => page::is_genuine(shown, from, &readable(content), said.prose),
        Kind::Matches => matches::is_genuine(shown, &readable(content), said.prose),
        // `Cleared` and `Link` show nothing.
        _ => false,
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
    /// The reader that hints name now, if any. Older hints may name none.
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
    [said.reader, None].into_iter().any(|reader| {
        let facts = Facts {
            tool: said.tool,
            reader,
            parts,
            ..Facts::default()
        };
        said.prose
            .says(&shown.prose, |prose| prose.of_hint(shown, facts))
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

/// A page of `stored` from `from` on, as one text of at most `room` bytes. Its content gets at
/// least [`MIN_PAGE`] bytes, even if the text then exceeds `room`.
pub(crate) async fn page(
    session: &Session,
    stored: &Stored,
    from: Position,
    max_lines: Option<u64>,
    room: usize,
) -> Result<String, BackendError> {
    let prose = session.prose();
    let room = room
        .saturating_sub(overhead(&stored.location, prose))
        .max(MIN_PAGE);
    let mut cutter = page::PageCutter::new(from, max_lines, room);
    let see = |bytes: &[u8], total| cutter.push(bytes) || total <= MAX_COUNTED;
    let total = stored.scan(see).await?;
    let page = cutter.finish(total).hint(stored.location.clone(), prose);
    Ok(page.render())
}

/// An upper bound on the bytes of a page's text, not counting its content.
pub(crate) fn overhead(location: &Location, prose: &Prose) -> usize {
    const LARGE: u64 = 999_999_999_999;
    let position = Position {
        line: LARGE,
        byte: LARGE,
    };
    let mut hint = Hint::new(Kind::Page { from: position }, LARGE);
    hint.lines = Some(LARGE);
    hint.location = Some(location.clone());
    // Whole lines, a piece of one line, one whole line, and nothing.
    let pages = [
        (LARGE - 1, LARGE, 0, false),
        (LARGE, LARGE, 1, false),
        (LARGE, LARGE, 0, false),
        (LARGE, LARGE, 0, true),
    ];
    let pages = pages.map(|(line, last, byte, is_empty)| {
        prose.of_page(
            Position { line, byte },
            last,
            Some(Position {
                line: LARGE + 1,
                byte: LARGE,
            }),
            is_empty,
        )
    });
    let said = pages
        .into_iter()
        .chain([prose.of_matches(LARGE, Some(position))]);
    hint.prose = said.max_by_key(String::len).unwrap_or_default();
    hint.render().len() + "+99999\n".len()
}
