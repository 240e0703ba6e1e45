//! One way in which a result may be a stretch of stored content, compared as the result comes.

use std::borrow::Cow;

use crate::backend::BackendError;
use crate::hint::Position;
use crate::store::{Blocks, Stored};
use crate::text::lines::first_line;

/// What a reader may say beside the content, in bytes: a header and a footer.
pub(super) const MAX_BESIDE: usize = 256;
/// What a reader may put before each line, in bytes: a number and what separates it.
pub(super) const MAX_NUMBER: usize = 16;
/// A line's number is told from its text by so many bytes, or by the whole line where that is
/// shorter.
const MAX_LOOK: usize = 1024;

/// Where in a result and in the stored content a stretch may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The bytes of the result before it: a header.
    pub(super) header: usize,
    /// Its first byte in the stored content, and where that is by lines.
    pub(super) at: u64,
    pub(super) position: Position,
    /// Whether the reader puts the number of each line before it.
    pub(super) is_numbered: bool,
}

/// A stretch that begins at one [`Start`], as far as it has been compared. Holds a window of the
/// stored content, whatever the length of the result.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) start: Start,
    /// The first bytes of the result stay as they are, and this is how many.
    keep: u64,
    /// Where in the stored content what follows them begins, once that is known.
    from: Option<Position>,
    /// The next byte that is compared.
    at: u64,
    position: Position,
    /// How many bytes of the result were compared or are a header.
    taken: u64,
    is_at_number: bool,
    /// The beginning of a line that does not tell yet where its number ends.
    begun: Vec<u8>,
    /// The last line as the result shows it; `None` if it is longer than a footer.
    line: Option<Vec<u8>>,
    /// Whether there was more than line feeds.
    has_text: bool,
    /// What came after the stretch.
    footer: Option<Vec<u8>>,
    window: Window,
}

/// What is known of a stretch once the result has ended.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) start: Start,
    pub(super) from: Position,
    pub(super) footer: Vec<u8>,
}

impl Stretch {
    /// The first `shown` bytes of the result were shown already.
    pub(super) fn new(start: Start, shown: usize) -> Self {
        Self {
            start,
            keep: shown.max(start.header) as u64,
            from: None,
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

    /// How many bytes of the result stay as they are.
    pub(super) fn keep(&self) -> usize {
        // It was a usize.
        self.keep as usize
    }

    /// The result goes on with `bytes`. `false` if it is not this stretch.
    pub(super) async fn push(
        &mut self,
        stored: &Stored,
        bytes: &[u8],
        window: u64,
    ) -> Result<bool, BackendError> {
        self.compare(stored, bytes, window, false).await
    }

    /// The result has ended.
    pub(super) async fn finish(
        mut self,
        stored: &Stored,
        window: u64,
    ) -> Result<Option<Found>, BackendError> {
        if !self.compare(stored, &[], window, true).await? || !self.has_text {
            return Ok(None);
        }
        let footer = self.footer.take().unwrap_or_default();
        // A line feed that a reader puts at the end says nothing.
        let footer = if footer == b"\n" {
            Vec::new()
        } else {
            self.whole_line(footer)
        };
        let end = self.taken.saturating_sub(footer.len() as u64);
        let Some(from) = self.from.filter(|_| self.keep < end) else {
            return Ok(None);
        };
        Ok(Some(Found {
            start: self.start,
            from,
            footer,
        }))
    }

    /// The footer from the beginning of its line on, which may happen to begin like the stored one.
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
        self.start.header + footer <= MAX_BESIDE
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
            self.take(&text[..same]);
            rest = &rest[same..];
        }
        if let Some(footer) = &mut self.footer {
            if self.start.header + footer.len() + rest.len() > MAX_BESIDE {
                return Ok(false);
            }
            footer.extend_from_slice(rest);
            self.taken += rest.len() as u64;
        }
        Ok(true)
    }

    fn take_number(&mut self, number: &[u8]) {
        if self.keep < self.taken + number.len() as u64 {
            self.from.get_or_insert(self.position);
        }
        self.taken += number.len() as u64;
        self.show(number);
        self.is_at_number = false;
    }

    /// What is stored comes next in the result.
    fn take(&mut self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        if self.keep < self.taken + length && self.from.is_none() {
            // What is kept ends here, or before a number that comes before this.
            let kept = usize::try_from(self.keep.saturating_sub(self.taken)).unwrap_or_default();
            self.from = Some(self.position.after(&bytes[..kept]));
        }
        self.position = self.position.after(bytes);
        self.has_text |= bytes.iter().any(|byte| *byte != b'\n');
        (self.at, self.taken) = (self.at + length, self.taken + length);
        self.show(bytes);
        self.is_at_number = self.start.is_numbered && bytes.ends_with(b"\n");
    }

    /// Keeps the last line as far as it may be a footer's.
    fn show(&mut self, bytes: &[u8]) {
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
            .filter(|line| line.len() + last.len() <= MAX_BESIDE);
        if let Some(line) = &mut self.line {
            line.extend_from_slice(last);
        }
    }
}

/// How many bytes of a result's line are its number, where the rest is the beginning of `stored`:
/// `  12→`, `12: `, `L12|`. Another number is not the reader's but something that is nowhere else.
fn number_before(line: &[u8], number: u64, stored: &[u8]) -> Option<usize> {
    let is_right = |length: &usize| {
        let rest = &line[*length..];
        // Readers put a line feed after the last line too.
        let is_last = || rest.strip_suffix(b"\n").is_some_and(|rest| rest == stored);
        number_in(&line[..*length]) == Some(number) && (stored.starts_with(rest) || is_last())
    };
    (1..=line.len().min(MAX_NUMBER)).find(is_right)
}

/// The number that a reader's mark before a line gives.
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

/// The number that the line which `text` begins with may have before it.
pub(super) fn number_at(text: &[u8]) -> Option<u64> {
    let text = &text[..text.len().min(MAX_NUMBER)];
    let start = text.iter().position(u8::is_ascii_digit)?;
    let length = text[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    number_in(&text[..start + length])
}

/// Some of the stored content, from where it is compared.
#[derive(Debug, Default)]
struct Window {
    at: u64,
    bytes: Vec<u8>,
    is_last: bool,
}

impl Window {
    /// What is stored from `at` on: at least as much as telling a number takes, or all.
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
