//! Reading stored content back: bounded pages, by lines, by bytes inside long lines, or by a pattern.

mod matches;
mod other_reader;
mod page;
mod tool;

use crate::backend::BackendError;
use crate::hint::{Hint, Kind, Language, Position};
use crate::store::Stored;

pub(crate) use other_reader::{named_in, shown_by_another_reader};
pub use tool::ReadFileTool;

/// The least room, in bytes, that a page's content has.
pub(crate) const MIN_PAGE: usize = 200;
/// The lines of longer content are not counted for each page.
const MAX_COUNTED: u64 = 8 << 20;

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
    let prose = |language: Language| {
        let prose = language.prose();
        [prose.of_page(position, LARGE, Some(position), false), prose.of_matches(LARGE, Some(position))]
    };
    hint.prose = Language::ALL.into_iter().flat_map(prose).max_by_key(String::len).unwrap_or_default();
    hint.render().len() + "+99999\n".len()
}
