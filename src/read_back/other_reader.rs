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
/// What a reader may put before each line, in bytes: a number and what separates it.
const MAX_NUMBER: usize = 16;
/// How many words of a call's arguments may be locations.
const MAX_WORDS: usize = 64;

/// If `text` is what another reader returned of content that is stored at a location among the call's arguments: the page of
/// that content which begins where the text does, and before it what else the reader said.
///
/// Without this, a model that reads stored content with a tool of its own would have the result stored, and would read that, and
/// so on. Only what stands in the stored content, in its order, is cut, so nothing is lost.
pub(crate) async fn shown_by_another_reader(
    session: &Session,
    call: &ToolCall,
    text: &str,
    room: usize,
) -> Option<(Stored, Vec<Part>)> {
    let stored = named_in(session, call)?;
    let content = stored.whole().await.ok()??;
    let Read { from, beside } = match std::str::from_utf8(&content) {
        Ok(content) => stretch(text, content).or_else(|| compare(text, content))?,
        Err(_) => compare(text, &String::from_utf8_lossy(&content))?,
    };
    let room = room.checked_sub(beside.len())?;
    let page = page(&stored, from, None, room, session.prose()).await.ok()?;
    let beside = (!beside.is_empty()).then_some(Part::Text(beside));
    Some((stored, beside.into_iter().chain([Part::Text(page)]).collect()))
}

/// Content of this session that the call's arguments name.
pub(crate) fn named_in(session: &Session, call: &ToolCall) -> Option<Stored> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    location_in(session, &arguments, &mut MAX_WORDS.clone())
}

/// The first location that the arguments name, as a value or as a word of a command.
fn location_in(session: &Session, arguments: &Value, words: &mut usize) -> Option<Stored> {
    match arguments {
        Value::String(text) => session.resolve(text).or_else(|| {
            let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>()=,".contains(c);
            text.split(is_between).filter(|word| !word.is_empty()).find_map(|word| {
                *words = words.checked_sub(1)?;
                session.resolve(word)
            })
        }),
        Value::Array(values) => values.iter().find_map(|value| location_in(session, value, words)),
        Value::Object(fields) => fields.values().find_map(|value| location_in(session, value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

struct Read {
    /// Where in the content the text begins.
    from: Position,
    beside: String,
}

/// The text as one stretch of the content.
fn stretch(text: &str, content: &str) -> Option<Read> {
    let at = content.find(text.trim_end_matches('\n'))?;
    let before = &content[..at];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() as u64 + 1;
    let byte = before.rfind('\n').map_or(at, |feed| at - feed - 1) as u64;
    Some(Read { from: Position { line, byte }, beside: String::new() })
}

/// How `text` was read from `content`: line by line, perhaps with numbers before the lines, and with little beside.
fn compare(text: &str, content: &str) -> Option<Read> {
    let mut lines = content.lines().zip(1u64..);
    let (mut first, mut beside, mut lines_beside) = (None, String::new(), 0);
    for line in text.lines() {
        let mut ahead = lines.clone();
        match ahead.find(|(stored, number)| is_line(line, stored, *number)) {
            Some((_, number)) => {
                first.get_or_insert(number);
                lines = ahead;
            }
            None if beside.len() + line.len() < MAX_BESIDE && lines_beside < MAX_BESIDE_LINES => {
                lines_beside += 1;
                beside.push_str(line);
                beside.push('\n');
            }
            None => return None,
        }
    }
    beside.truncate(beside.trim_end().len());
    Some(Read { from: Position { line: first?, byte: 0 }, beside })
}

/// Whether a reader that shows `line` may have read `stored`, the line of that number: the same, or behind its number, such as
/// in `  12→text`, `12: text` or `L12|text`. Another number is not the reader's but something that is nowhere else.
fn is_line(line: &str, stored: &str, number: u64) -> bool {
    let Some(before) = line.strip_suffix(stored) else { return false };
    let is_mark = |c: char| c.is_ascii_digit() || c.is_whitespace() || "L→:|#.[]()-".contains(c);
    let digits: String = before.chars().filter(char::is_ascii_digit).collect();
    before.is_empty() || before.len() <= MAX_NUMBER && before.chars().all(is_mark) && digits.parse() == Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r3_a_reading_is_told_from_other_output() {
        let content = "alpha\nbeta\n\ngamma\ndelta\n";
        let read = |text: &str| compare(text, content).map(|read| (read.from.line, read.beside));
        assert_eq!(read(content), Some((1, String::new())));
        assert_eq!(read("     2→beta\n     3→\n     4→gamma"), Some((2, String::new())));
        assert_eq!(read("[1] alpha\n[2] beta"), Some((1, String::new())));
        assert_eq!(read("File: x\nbeta\n\ngamma\n(2 more lines)"), Some((2, "File: x\n(2 more lines)".into())));
        assert_eq!(read(&format!("alpha\n{}", "other ".repeat(60))), None);
        assert_eq!(read("gamma\nalpha").map(|(_, beside)| beside), Some("alpha".into()), "out of order is beside");
        assert_eq!(read("nothing of it"), None);
        assert!(is_line("012: alpha", "alpha", 12) && !is_line("7: alpha", "alpha", 12));
        assert!(!is_line("12 monkeys alpha", "alpha", 12) && !is_line("x: alpha", "alpha", 1));
    }

    #[test]
    fn r3_a_stretch_of_a_long_line_is_found() {
        let content = format!("head\n{}", "0123456789".repeat(10));
        let at = |text: &str| stretch(text, &content).map(|read| (read.from.line, read.from.byte));
        assert_eq!(at("0123"), Some((2, 0)));
        assert_eq!(at("90123"), Some((2, 9)));
        assert_eq!(at("d\n0"), Some((1, 3)));
        assert_eq!(at("x"), None);
    }
}
