//! What a reader that is not ours returns of content that is ours.

use serde_json::Value;

use super::page;
use crate::content::{Part, ToolCall};
use crate::hint::Position;
use crate::session::Session;
use crate::store::Stored;

/// What a reader may say beside the content, in bytes: a header, a footer.
const MAX_BESIDE: usize = 256;
/// The same in lines.
const MAX_BESIDE_LINES: usize = 16;

/// If `text` is what another reader returned of content that is stored at a location among the call's arguments: the page of
/// that content which begins where the text does, and before it what else the reader said.
///
/// Without this, a model that reads stored content with a tool of its own would have the result stored, and would read that, and
/// so on. Only lines that stand in the stored content, in their order, are cut, so nothing is lost.
pub(crate) async fn shown_by_another_reader(
    session: &Session,
    call: &ToolCall,
    text: &str,
    room: usize,
) -> Option<(Stored, Vec<Part>)> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let stored = arguments.as_object()?.values().find_map(|value| session.resolve(value.as_str()?))?;
    let content = stored.whole().await.ok()??;
    let content = String::from_utf8_lossy(&content);
    let Read { first, beside } = compare(text, &content)?;
    let room = room.checked_sub(beside.len())?;
    let from = Position { line: first, byte: 0 };
    let page = page(&stored, from, None, room, session.language()).await.ok()?;
    let beside = (!beside.is_empty()).then_some(Part::Text(beside));
    Some((stored, beside.into_iter().chain([Part::Text(page)]).collect()))
}

struct Read {
    /// The first line of the content that was read.
    first: u64,
    beside: String,
}

/// How `text` was read from `content`: line by line, perhaps with numbers before the lines, and with little beside.
fn compare(text: &str, content: &str) -> Option<Read> {
    let mut lines = content.lines().zip(1u64..).peekable();
    let (mut first, mut beside) = (None, String::new());
    for line in text.lines() {
        let bare = without_number(line);
        let mut ahead = lines.clone();
        match ahead.find(|(stored, _)| *stored == line || Some(*stored) == bare) {
            Some((_, number)) => {
                first.get_or_insert(number);
                lines = ahead;
            }
            None if beside.len() + line.len() < MAX_BESIDE && beside.lines().count() < MAX_BESIDE_LINES => {
                beside.push_str(line);
                beside.push('\n');
            }
            None => return None,
        }
    }
    beside.truncate(beside.trim_end().len());
    Some(Read { first: first?, beside })
}

/// The line without the number that file readers put before it: `  12→text`, `12:text`, `12|text`, `12<TAB>text`.
fn without_number(line: &str) -> Option<&str> {
    let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < line.trim_start().len();
    let rest = rest.strip_prefix(['→', ':', '|', '\t'])?;
    is_numbered.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r3_a_reading_is_told_from_other_output() {
        let content = "alpha\nbeta\ngamma\ndelta\n";
        let read = |text: &str| compare(text, content).map(|read| (read.first, read.beside));
        assert_eq!(read(content), Some((1, String::new())));
        assert_eq!(read("     2→beta\n     3→gamma"), Some((2, String::new())));
        assert_eq!(read("File: x\nbeta\ngamma\n(2 more lines)"), Some((2, "File: x\n(2 more lines)".into())));
        assert_eq!(read(&format!("alpha\n{}", "other ".repeat(60))), None);
        assert_eq!(read("nothing of it"), None);
    }
}
