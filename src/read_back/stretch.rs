//! One candidate stretch of stored content for a result, compared as the result arrives.

use std::borrow::Cow;

use offcut_preview::text::lines::first_line;

use crate::backend::BackendError;
use crate::hint::Position;
use offcut_store::content::{Blocks, Stored};

/// Maximum number of bytes that a reader may add to the content: a header and a footer together.
pub(super) const MAX_READER_TEXT: usize = 256;
/// Maximum number of bytes that a reader may put before each line: a number and a separator.
pub(super) const MAX_NUMBER: usize = 16;
/// Bytes of a line that are compared to tell its number from its text; the whole line if it is
/// shorter.
const MAX_LOOK: usize = 1024;

/// A possible beginning of a stretch, in a result and in the stored content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// Number of bytes before it in the result: a header.
    pub(super) header: usize,
    /// Offset of its first byte in the stored content, and the position of that byte by lines.
    pub(super) at: u64,
    pub(super) position: Position,
    /// True if the reader puts each line's number before it.
    pub(super) is_numbered: bool,
}

/// The part compared so far of a stretch that begins at one [`Start`]. Holds a window of the stored
/// content, however long the result is.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) start: Start,
    /// Offset in the stored content of the next byte to compare.
    at: u64,
    position: Position,
    /// Number of bytes of the result that were compared or are a header.
    taken: u64,
    is_at_number: bool,
    /// The beginning of a line, while the end of its number is unclear.
    begun: Vec<u8>,
    /// The last line as the result shows it; `None` if it is longer than a footer may be.
    line: Option<Vec<u8>>,
    /// True if something other than line feeds matched.
    has_text: bool,
    /// The bytes of the result after the stretch; `None` before its end.
    footer: Option<Vec<u8>>,
    window: Window,
}

/// A stretch that matched the whole result.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) start: Start,
    pub(super) footer: Vec<u8>,
}

impl Stretch {
    /// Starts comparing.
    pub(super) fn new(start: Start) -> Self {
        Self {
            start,
            at: start.at,
            position: start.position,
            taken: start.header as u64,
            is_at_number: start.is_numbered,
            begun: Vec::new(),
            line: Some(Vec::new()),
            has_text: false,
            footer: None,
            window: Window::default(),
        }
    }

    /// Compares the next `bytes` of the result. Returns false if it is not this stretch.
    pub(super) async fn push(
        &mut self,
        stored: &Stored,
        bytes: &[u8],
        window: u64,
    ) -> Result<bool, BackendError> {
        self.compare(stored, bytes, window, false).await
    }

    /// Ends the result. Returns `None` if it was not this stretch.
    pub(super) async fn finish(
        mut self,
        stored: &Stored,
        window: u64,
    ) -> Result<Option<Found>, BackendError> {
        if !self.compare(stored, &[], window, true).await? || !self.has_text {
            return Ok(None);
        }
        let footer = self.footer.take().unwrap_or_default();
        // A line feed that a reader adds at the end means nothing.
        let footer = if footer == b"\n" {
            Vec::new()
        } else {
            self.whole_line(footer)
        };
        let end = self.taken.saturating_sub(footer.len() as u64);
        let start = self.start;
        Ok((end > start.header as u64).then_some(Found { start, footer }))
    }

    /// Extends the footer back to the beginning of its line, in case that line happens to begin
    /// like the stored one.
    fn whole_line(&mut self, footer: Vec<u8>) -> Vec<u8> {
        match self.line.take() {
            Some(line)
                if !footer.is_empty()
                    && footer[0] != b'\n'
                    && self.has_room(line.len() + footer.len()) =>
            {
                [line, footer].concat()
            }
            _ => footer,
        }
    }

    fn has_room(&self, footer: usize) -> bool {
        self.start.header + footer <= MAX_READER_TEXT
    }

    async fn compare(
        &mut self,
        stored: &Stored,
        bytes: &[u8],
        window: u64,
        is_end: bool,
    ) -> Result<bool, BackendError> {
        let begun = std::mem::take(&mut self.begun);
        let joined = if begun.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned([&begun, bytes].concat())
        };
        let mut rest = joined.as_ref();
        while !rest.is_empty() && self.footer.is_none() {
            let there = self.window.from(stored, self.at, window).await?;
            let line = first_line(rest);
            if self.is_at_number {
                let line = &line[..line.len().min(MAX_LOOK)];
                if !is_end && line.len() < MAX_LOOK && !line.ends_with(b"\n") {
                    self.begun = rest.to_vec();
                    return Ok(true);
                }
                match number_before(line, self.position.line, there) {
                    Some(number) => {
                        self.take_number(&line[..number]);
                        rest = &rest[number..];
                    }
                    None => self.footer = Some(Vec::new()),
                }
                continue;
            }
            let text = if self.start.is_numbered { line } else { rest };
            let same = text
                .iter()
                .zip(there)
                .take_while(|(one, other)| one == other)
                .count();
            if same == 0 {
                self.footer = Some(Vec::new());
            }
            self.advance(&text[..same]);
            rest = &rest[same..];
        }
        if let Some(footer) = &mut self.footer {
            if self.start.header + footer.len() + rest.len() > MAX_READER_TEXT {
                return Ok(false);
            }
            footer.extend_from_slice(rest);
            self.taken += rest.len() as u64;
        }
        Ok(true)
    }

    fn take_number(&mut self, number: &[u8]) {
        self.taken += number.len() as u64;
        self.remember_line(number);
        self.is_at_number = false;
    }

    /// Takes bytes of the result that equal the next stored ones.
    fn advance(&mut self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        self.position = self.position.after(bytes);
        self.has_text |= bytes.iter().any(|byte| *byte != b'\n');
        (self.at, self.taken) = (self.at + length, self.taken + length);
        self.remember_line(bytes);
        self.is_at_number = self.start.is_numbered && bytes.ends_with(b"\n");
    }

    /// Keeps the last line while it may belong to a footer.
    fn remember_line(&mut self, bytes: &[u8]) {
        let last = match memchr::memrchr(b'\n', bytes) {
            Some(feed) => {
                self.line = Some(Vec::new());
                &bytes[feed + 1..]
            }
            None => bytes,
        };
        self.line = self
            .line
            .take()
            .filter(|line| line.len() + last.len() <= MAX_READER_TEXT);
        if let Some(line) = &mut self.line {
            line.extend_from_slice(last);
        }
    }
}

/// Length of the number at the beginning of a result's line, such as `  12→`, `12: ` or `L12|`,
/// where the rest of the line is the beginning of `stored`. Any other number than `number` does not
/// count: it is not the reader's, but content that is nowhere else.
fn number_before(line: &[u8], number: u64, stored: &[u8]) -> Option<usize> {
    let is_right = |length: &usize| {
        let rest = &line[*length..];
        // Readers add a line feed after the last line too.
        let is_last = || rest.strip_suffix(b"\n").is_some_and(|rest| rest == stored);
        number_in(&line[..*length]) == Some(number) && (stored.starts_with(rest) || is_last())
    };
    (1..=line.len().min(MAX_NUMBER)).find(is_right)
}

/// Parses the number in a reader's mark before a line.
fn number_in(mark: &[u8]) -> Option<u64> {
    let mark = std::str::from_utf8(mark).ok()?;
    let is_mark =
        |c: char| c.is_ascii_digit() || c.is_whitespace() && c != '\n' || "L→:|#.[]()-".contains(c);
    let digits: String = mark.chars().filter(char::is_ascii_digit).collect();
    if mark.chars().all(is_mark) {
        digits.parse().ok()
    } else {
        None
    }
}

/// The line number that `text` begins with, if it has one.
pub(super) fn number_at(text: &[u8]) -> Option<u64> {
    let text = &text[..text.len().min(MAX_NUMBER)];
    let start = text.iter().position(u8::is_ascii_digit)?;
    let length = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    number_in(&text[..start + length])
}

/// A window of the stored content, from the place of comparison on.
#[derive(Debug, Default)]
struct Window {
    at: u64,
    bytes: Vec<u8>,
    is_last: bool,
}

impl Window {
    /// The stored content from `at` on: at least [`MAX_LOOK`] bytes, or all that is left.
    async fn from(&mut self, stored: &Stored, at: u64, length: u64) -> Result<&[u8], BackendError> {
        let start = usize::try_from(at - self.at).unwrap_or(usize::MAX);
        if !self.is_last && self.bytes.len().saturating_sub(start) < MAX_LOOK {
            (self.at, self.bytes) = (at, Vec::new());
            let mut blocks = Blocks::from(stored, at, length);
            while self.bytes.len() < MAX_LOOK
                && let Some(page) = blocks.next().await?
            {
                self.bytes.extend_from_slice(&page.bytes);
            }
            self.is_last = blocks.is_at_end();
        }
        let start = usize::try_from(at - self.at).unwrap_or(usize::MAX);
        Ok(self.bytes.get(start..).unwrap_or_default())
    }
}
