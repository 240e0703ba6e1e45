//! Places in texts.

use std::fmt;

/// A place in a text: a line, counted from 1, and a byte in it, counted from 0.
///
/// As text it is the line alone, or line and byte joined by `+`: `12`, `1+50000`.
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

    /// Reads `12` or `1+50000`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (line, byte) = match text.split_once('+') {
            Some((line, byte)) => (number(line)?, number(byte).filter(|byte| *byte > 0)?),
            None => (number(text)?, 0),
        };
        (line > 0).then_some(Self { line, byte })
    }

    /// The place after `bytes`, which begin here.
    pub(crate) fn after(self, bytes: &[u8]) -> Self {
        match memchr::memrchr(b'\n', bytes) {
            Some(feed) => {
                let feeds = memchr::memchr_iter(b'\n', bytes).count() as u64;
                Self {
                    line: self.line + feeds,
                    byte: (bytes.len() - feed - 1) as u64,
                }
            }
            None => Self {
                line: self.line,
                byte: self.byte + bytes.len() as u64,
            },
        }
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

/// A number in its one spelling: digits, no sign, no leading zero.
pub(super) fn number(digits: &str) -> Option<u64> {
    let is_canonical = digits == "0" || !digits.starts_with('0');
    if is_canonical && digits.bytes().all(|b| b.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}
