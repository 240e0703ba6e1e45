//! Possible beginnings of a result in stored content, found by some of its first bytes or by the
//! number of its first line.

use memchr::memmem::Finder;
use offcut_preview::text::lines::begins;

use super::stretch::{MAX_READER_TEXT, Start, number_at};
use crate::backend::BackendError;
use crate::hint::Position;
use offcut_store::content::{MAX_WHOLE, Stored};

/// Number of starts of each kind that are compared, at most. If a text repeats, its first places
/// have the longest continuations.
const MAX_STARTS: usize = 8;
/// The longest text that is searched for, in bytes.
const MAX_NEEDLE: usize = 16 << 10;
/// The shortest text that is searched for, in bytes. A shorter one would match everywhere.
const MIN_NEEDLE: usize = 16;
/// Bytes of the stored content that are read at once.
pub(super) const WINDOW: u64 = 256 << 10;

/// The possible beginnings, in the stored content, of a result that begins with `first`. Content
/// after [`MAX_WHOLE`] bytes is not searched: a result from there is treated like any other.
pub(super) async fn starts(stored: &Stored, first: &[u8]) -> Result<Vec<Start>, BackendError> {
    let Some(mut search) = Search::new(first) else {
        return Ok(Vec::new());
    };
    stored
        .scan_from(0, WINDOW, |block, _| search.push(block))
        .await?;
    Ok(search.found())
}

/// A search in content that arrives in blocks. Holds one block and the text that is searched for.
struct Search<'f> {
    /// The first bytes of the result. At most `header` of them are a reader's header.
    first: &'f [u8],
    header: usize,
    needle: Finder<'f>,
    /// Numbers of lines that the result may begin with, each with the length of the header before
    /// it.
    lines: Vec<(u64, usize)>,
    /// The last bytes of the content. `offset` and `position` are the place of the first of them;
    /// `searched` counts the content's bytes that were searched.
    buffer: Vec<u8>,
    offset: u64,
    position: Position,
    searched: u64,
    whole: Vec<Start>,
    by_text: Vec<Start>,
    by_number: Vec<Start>,
}

impl<'f> Search<'f> {
    /// Returns `None` if there is too little to search for.
    fn new(first: &'f [u8]) -> Option<Self> {
        // Assumes that most of a short result is neither header nor footer.
        let header = MAX_READER_TEXT.min(first.len() / 4);
        let needle = &first[header..first.len() - header];
        let needle = &needle[..needle.len().min(MAX_NEEDLE)];
        let begins = begins(&first[..header]);
        let begins: Vec<usize> = std::iter::once(0).chain(begins).take(MAX_STARTS).collect();
        let lines = begins
            .iter()
            .filter_map(|header| Some((number_at(&first[*header..])?, *header)))
            .collect();
        // Content that is read from its beginning is recognized whatever it begins with, so that it
        // is never stored again.
        let whole = |header| Start {
            header,
            at: 0,
            position: Position::START,
            is_numbered: false,
        };
        (needle.len() >= MIN_NEEDLE).then(|| Self {
            first,
            header,
            needle: Finder::new(needle),
            lines,
            buffer: Vec::new(),
            offset: 0,
            position: Position::START,
            searched: 0,
            whole: begins.into_iter().map(whole).collect(),
            by_text: Vec::new(),
            by_number: Vec::new(),
        })
    }

    /// Takes the next block. Returns true if it needs more.
    fn push(&mut self, block: &[u8]) -> bool {
        self.find_lines(block);
        self.buffer.extend_from_slice(block);
        self.find_text();
        let is_done = self.by_text.len() >= MAX_STARTS && self.lines.is_empty();
        // A match may begin in this block and end in the next one, and its header is before it.
        let overlap = self.needle.needle().len() - 1 + self.header;
        let done = self.buffer.len().saturating_sub(overlap);
        self.position = self.position.after(&self.buffer[..done]);
        self.buffer.drain(..done);
        self.offset += done as u64;
        !is_done && self.offset < MAX_WHOLE
    }

    /// Finds numbered lines among those that begin in `block` or right after it.
    fn find_lines(&mut self, block: &[u8]) {
        if self.lines.is_empty() {
            return;
        }
        let Position { line: before, .. } = self.position.after(&self.buffer);
        let block_at = self.offset + self.buffer.len() as u64;
        let starts = begins(block).map(|at| block_at + at as u64);
        let starts = (block_at == 0).then_some(0).into_iter().chain(starts);
        for (at, line) in starts.zip(if block_at == 0 { before } else { before + 1 }..) {
            self.lines.retain(|(number, header)| {
                if *number == line {
                    let position = Position { line, byte: 0 };
                    self.by_number.push(Start {
                        header: *header,
                        at,
                        position,
                        is_numbered: true,
                    });
                }
                *number != line
            });
        }
    }

    fn find_text(&mut self) {
        // Both offsets are within the buffer, so their difference fits.
        let mut from = (self.searched - self.offset) as usize;
        while self.by_text.len() < MAX_STARTS
            && let Some(at) = self.needle.find(&self.buffer[from..]).map(|at| from + at)
        {
            let before = self.first[..self.header]
                .iter()
                .rev()
                .zip(self.buffer[..at].iter().rev());
            let same = before.take_while(|(one, other)| one == other).count();
            let header = self.header - same;
            // A header ends at the end of a line, if possible.
            let line = if header == 0 {
                Some(0)
            } else {
                self.first[header - 1..self.header].iter().position(is_feed)
            };
            let header = header + line.unwrap_or_default();
            let start = at - (self.header - header);
            self.by_text.push(Start {
                header,
                at: self.offset + start as u64,
                position: self.position.after(&self.buffer[..start]),
                is_numbered: false,
            });
            from = at + 1;
        }
        let sure = (self.buffer.len() + 1).saturating_sub(self.needle.needle().len());
        self.searched = self.offset + from.max(sure) as u64;
    }

    fn found(self) -> Vec<Start> {
        let mut all = self.whole;
        all.extend(self.by_number);
        for start in self.by_text {
            if !all.contains(&start) {
                all.push(start);
            }
        }
        all
    }
}

fn is_feed(byte: &u8) -> bool {
    *byte == b'\n'
}
