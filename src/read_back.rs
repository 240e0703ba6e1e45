//! Reading stored content back: bounded pages, by lines, by bytes inside long lines, or by a pattern.

mod matches;
mod other_reader;
mod page;
mod tool;

use std::sync::Arc;

use bytes::Bytes;

use crate::backend::{Backend, BackendError, ErrorKind, Key, Location};
use crate::hint::{Hint, Kind, Language, Position};

pub(crate) use other_reader::shown_by_another_reader;
pub use tool::ReadFileTool;

/// The least room, in bytes, that a page's content has.
pub(crate) const MIN_PAGE: usize = 200;
/// The most, in bytes, that a page takes, its hint included. The truncation limit bounds it too.
pub(crate) const MAX_PAGE: usize = 16 * 1024;
/// Content up to so many bytes is read whole where a text has to be compared with it.
pub(crate) const MAX_WHOLE: u64 = 64 << 20;
/// The lines of longer content are not counted for each page.
const MAX_COUNTED: u64 = 8 << 20;
/// How many bytes are asked of a backend at once.
const BLOCK: u64 = 1 << 20;

/// Stored content and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) key: Key,
    pub(crate) location: Location,
}

impl Stored {
    /// Gives `see` the content block by block until it has seen enough, and says how long the content is.
    async fn scan(&self, mut see: impl FnMut(&[u8], u64) -> bool + Send) -> Result<u64, BackendError> {
        let mut at = 0;
        loop {
            let page = self.backend.read(&self.key, at..at + BLOCK).await?;
            let wants_more = see(&page.bytes, page.total);
            at += page.bytes.len() as u64;
            if page.bytes.is_empty() && at < page.total {
                let message =
                    format!("`{}` ended after {at} of {} bytes: the store is broken", self.location, page.total);
                return Err(BackendError::new(ErrorKind::Other, message));
            }
            if at >= page.total || !wants_more {
                return Ok(page.total);
            }
        }
    }

    /// All of it, or `None` if it is more than [`MAX_WHOLE`].
    pub(crate) async fn whole(&self) -> Result<Option<Bytes>, BackendError> {
        let mut content = Vec::new();
        let total = self
            .scan(|bytes, total| {
                if total <= MAX_WHOLE {
                    content.extend_from_slice(bytes);
                }
                total <= MAX_WHOLE
            })
            .await?;
        Ok((content.len() as u64 == total).then(|| content.into()))
    }
}

/// Whether `hint` is a page or a list of matches that the reader makes of `content`, to the byte. A text that merely looks like
/// one must not be thrown away: what it holds is nowhere else.
pub(crate) fn is_genuine(hint: &Hint, content: &[u8]) -> bool {
    match hint.kind {
        Kind::Page { from } => page::is_genuine(hint, from, content),
        Kind::Matches => matches::is_genuine(hint, content),
        Kind::Truncated | Kind::Cleared | Kind::Link => false,
    }
}

/// A hint's text must be in one of our languages to be ours.
fn is_said(prose: &str, say: impl Fn(Language) -> String) -> bool {
    Language::ALL.into_iter().any(|language| say(language) == prose)
}

/// A page of `stored` from `from` on, as one text of at most `room` bytes.
pub(crate) async fn page(
    stored: &Stored,
    from: Position,
    max_lines: Option<u64>,
    room: usize,
    language: Language,
) -> Result<String, BackendError> {
    let room = room.saturating_sub(overhead(stored)).max(MIN_PAGE);
    let mut cutter = page::Cutter::new(from, max_lines, room);
    let total = stored.scan(|bytes, total| cutter.push(bytes) || total <= MAX_COUNTED).await?;
    Ok(cutter.finish(total).hint(stored.location.clone(), language).render())
}

/// What of a page's text is not its content, at most.
fn overhead(stored: &Stored) -> usize {
    const LARGE: u64 = 999_999_999_999;
    let position = Position { line: LARGE, byte: LARGE };
    let mut hint = Hint::new(Kind::Page { from: position }, LARGE);
    hint.lines = Some(LARGE);
    hint.location = Some(stored.location.clone());
    let prose = |language: Language| language.prose().of_page(position, LARGE, Some(position), false);
    hint.prose = Language::ALL.map(prose).into_iter().max_by_key(String::len).unwrap_or_default();
    hint.render().len() + "+99999\n".len()
}
