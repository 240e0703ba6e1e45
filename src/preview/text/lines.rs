//! Lines of texts, and positions in them.

use std::fmt;

/// A position in a text: a line, counted from 1, and a byte in that line, counted from 0.
///
/// It is written as the line alone, or as line and byte joined by `+`: `12`, `1+50000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The line, counted from 1.
    pub line: u64,
    /// The byte in the line, counted from 0.
    pub byte: u64,
}

impl Position {
    /// The beginning of a text.
    pub const START: Self = Self { line: 1, byte: 0 };

    /// Parses `12` or `1+50000`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (line, byte) = match text.split_once('+') {
            Some((line, byte)) => (number(line)?, number(byte).filter(|byte| *byte > 0)?),
            None => (number(text)?, 0),
        };
        (line > 0).then_some(Self { line, byte })
    }

    /// The position after `bytes`, which begin at this position.
    pub fn after(self, bytes: &[u8]) -> Self {
        let last_line = memchr::memrchr(b'\n', bytes).map_or(0, |feed| feed + 1);
        self.join(Self {
            line: 1 + count_feeds(&bytes[..last_line]),
            byte: (bytes.len() - last_line) as u64,
        })
    }

    /// The position in two texts joined, of which this is the end of the first and `next` a
    /// position in the second.
    pub fn join(self, next: Self) -> Self {
        match next.line {
            1 => Self {
                line: self.line,
                byte: self.byte + next.byte,
            },
            line => Self {
                line: self.line + line - 1,
                byte: next.byte,
            },
        }
    }

    /// Number of line feeds before the position.
    pub fn feeds(self) -> u64 {
        self.line - 1
    }

    /// Number of lines of a text that ends here. A last line without a line feed counts too.
    pub fn lines(self) -> u64 {
        self.feeds() + u64::from(self.byte > 0)
    }
}

/// The length of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) bytes: u64,
    pub(crate) end: Position,
}

impl Length {
    pub(crate) fn of(text: &str) -> Self {
        let (bytes, end) = (text.len() as u64, Position::START.after(text.as_bytes()));
        Self { bytes, end }
    }

    /// The length of two texts joined.
    pub(crate) fn join(self, next: Self) -> Self {
        let (bytes, end) = (self.bytes + next.bytes, self.end.join(next.end));
        Self { bytes, end }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.byte {
            0 => write!(f, "{}", self.line),
            byte => write!(f, "{}+{byte}", self.line),
        }
    }
}

/// Parses a number in its only spelling: digits, no sign, no leading zero.
pub fn number(digits: &str) -> Option<u64> {
    let number = digits.parse::<u64>().ok();
    number.filter(|number| number.to_string() == digits)
}

/// Number of line feeds in `text`.
pub fn count_feeds(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// Number of lines of `text`. A last line without a line feed counts too.
pub fn count_lines(text: &[u8]) -> u64 {
    Position::START.after(text).lines()
}

/// The first line of `text`, with its line feed if it has one.
pub fn first_line(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(b'\n', text).map_or(text.len(), |feed| feed + 1)]
}

/// The last line of `text`, with its line feed if it has one.
pub fn last_line(text: &[u8]) -> &[u8] {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    &text[memchr::memrchr(b'\n', body).map_or(0, |feed| feed + 1)..]
}

/// Offsets in `text` at which lines begin: 0, and right after each line feed.
pub fn begins(text: &[u8]) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(memchr::memchr_iter(b'\n', text).map(|feed| feed + 1))
}

/// The first line of `text` that is not blank, without blanks around it, in at most `most` bytes.
#[must_use]
pub fn opening(text: &str, most: usize) -> &str {
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    &line[..line.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn places_are_counted_whatever_the_chunks(text in "[a-z\n]{0,40}", size in 1usize..9, cut in any::<u8>()) {
            let text = text.as_bytes();
            let lines = text.split_inclusive(|byte| *byte == b'\n');
            prop_assert_eq!(first_line(text), lines.clone().next().unwrap_or_default());
            prop_assert_eq!(last_line(text), lines.clone().next_back().unwrap_or_default());
            prop_assert_eq!(count_lines(text), lines.count() as u64);
            let end = Position::START.after(text);
            prop_assert_eq!(text.chunks(size).fold(Position::START, Position::after), end);
            let (one, other) = text.split_at(usize::from(cut) % (text.len() + 1));
            prop_assert_eq!(Position::START.after(one).join(Position::START.after(other)), end);
            prop_assert_eq!(end.feeds(), count_feeds(text));
        }
    }
}
