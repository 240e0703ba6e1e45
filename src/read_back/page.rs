//! Pages: stretches of content that end with a line, or inside a line that is too long for a page.

use crate::preview::text::decoding::char_end;
use crate::preview::text::lines::first_line;

use crate::backend::Location;
use crate::hint::{Hint, Kind, Position, Prose};
use crate::session::Session;

/// The longest page, in bytes, including its hint. The truncation limit also bounds it.
const MAX_PAGE: usize = 16 * 1024;

/// The longest page that `tool` may return, in bytes: always within its truncation limit.
pub(super) fn room(session: &Session, tool: &str) -> usize {
    let policy = session.policy(tool);
    if policy.truncates() {
        policy.max_length_for_trunc.min(MAX_PAGE)
    } else {
        MAX_PAGE
    }
}

/// Cuts a page out of content that arrives in blocks. Holds only the page, however long the content
/// is.
#[derive(Debug)]
pub(super) struct PageCutter {
    from: Position,
    max_lines: Option<u64>,
    room: usize,
    /// The position of the next byte, up to the beginning of the page.
    at: Position,
    /// The page's bytes, and at most one more, which shows that the content continues.
    bytes: Vec<u8>,
    /// The position after the bytes pushed so far, and their number.
    end: Position,
    pushed: u64,
}

/// A page that was cut.
#[derive(Debug)]
pub(super) struct Page {
    from: Position,
    text: String,
    /// The position after its last byte.
    end: Position,
    has_next: bool,
    lines: Option<u64>,
}

impl PageCutter {
    /// Starts a page at `from`.
    pub(super) fn new(from: Position, max_lines: Option<u64>, room: usize) -> Self {
        Self {
            from,
            max_lines,
            room,
            at: Position::START,
            bytes: Vec::new(),
            end: Position::START,
            pushed: 0,
        }
    }

    /// Takes the next block. Returns true if the page itself needs more.
    pub(super) fn push(&mut self, block: &[u8]) -> bool {
        self.end = self.end.after(block);
        self.pushed += block.len() as u64;
        let mut rest = block;
        // Skips line by line up to the beginning of the page.
        while self.at < self.from && !rest.is_empty() && self.bytes.is_empty() {
            let mut step = first_line(rest).len();
            if self.at.line == self.from.line {
                let missing = self.from.byte - self.at.byte;
                step = usize::try_from(missing).map_or(step, |missing| missing.min(step));
            }
            self.at = self.at.after(&rest[..step]);
            rest = &rest[step..];
        }
        let wanted = (self.room + 1)
            .saturating_sub(self.bytes.len())
            .min(rest.len());
        self.bytes.extend_from_slice(&rest[..wanted]);
        self.bytes.len() <= self.room
    }

    /// Ends the page. `total` is the text's length in bytes, which may be more than was pushed.
    pub(super) fn finish(self, total: u64) -> Page {
        // An offset past the end of its line means the beginning of the next line.
        let from = if self.at > self.from {
            self.at
        } else {
            self.from
        };
        let mut stop = stop(&self.bytes, self.room, self.max_lines);
        let text = match std::str::from_utf8(&self.bytes[..stop]) {
            Ok(text) => text.to_owned(),
            // A replacement character takes three bytes.
            Err(_) => {
                stop = self::stop(&self.bytes, self.room / 3, self.max_lines);
                String::from_utf8_lossy(&self.bytes[..stop]).into_owned()
            }
        };
        let lines = (self.pushed == total).then(|| self.end.lines());
        Page {
            from,
            text,
            end: from.after(&self.bytes[..stop]),
            has_next: stop < self.bytes.len(),
            lines,
        }
    }
}

/// The end of a page of at most `room` bytes and `max_lines` lines: after a line if the page holds
/// a whole one, otherwise after a character.
fn stop(bytes: &[u8], room: usize, max_lines: Option<u64>) -> usize {
    let mut stop = bytes.len().min(room);
    if let Some(feed) = max_lines.and_then(|lines| nth_feed(bytes, lines)) {
        stop = stop.min(feed + 1);
    }
    if stop == bytes.len() {
        return stop;
    }
    match memchr::memrchr(b'\n', &bytes[..stop]) {
        Some(feed) => feed + 1,
        None => char_end(bytes, stop),
    }
}

fn nth_feed(bytes: &[u8], n: u64) -> Option<usize> {
    let nth = usize::try_from(n.checked_sub(1)?).ok()?;
    memchr::memchr_iter(b'\n', bytes).nth(nth)
}

impl Page {
    /// The page of what a query printed: as it is if that is all, else below a sentence that says which
    /// lines it has.
    #[cfg(feature = "query")]
    pub(super) fn text(self, prose: &Prose) -> String {
        if self.from == Position::START && !self.has_next {
            return self.text;
        }
        let said = said(prose, self.from, self.end, self.has_next);
        format!("{said}\n{}", self.text)
    }

    /// The page below its hint. What is stored has `bytes` bytes, which in UTF-16 are others than those of its text.
    pub(super) fn hint(self, bytes: u64, location: Location, prose: &Prose) -> Hint {
        let mut hint = Hint::new(Kind::Page { from: self.from }, bytes);
        hint.lines = self.lines;
        hint.location = Some(location);
        hint.prose = said(prose, self.from, self.end, self.has_next);
        hint.preview = self.text;
        hint
    }
}

/// The sentences for the page from `from` to `end`.
fn said(prose: &Prose, from: Position, end: Position, has_next: bool) -> String {
    // The last line with any byte shown.
    let last = end.line - u64::from(end.byte == 0 && end.line > from.line);
    prose.of_page(from, last, has_next.then_some(end), from == end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::super::shows_only;
    use super::*;
    use crate::hint::Language;
    use crate::preview::text::lines::count_lines;

    fn cut(content: &[u8], from: Position, lines: Option<u64>, room: usize) -> Page {
        let mut cutter = PageCutter::new(from, lines, room);
        for block in content.chunks(7) {
            cutter.push(block);
        }
        cutter.finish(content.len() as u64)
    }

    #[test]
    fn r2_a_page_names_its_lines_the_total_and_the_next_offset() {
        let content: String = (1..=9).map(|n| format!("line {n}\n")).collect();
        let page = cut(
            content.as_bytes(),
            Position { line: 3, byte: 0 },
            Some(2),
            500,
        );
        insta::assert_snapshot!(page.hint(63, Location::new("/x/trunc/a"), &Prose::of(Language::English)).render(), @r#"
        [offcut/1 page@3 63B/9L 34+14 "/x/trunc/a"] Lines 3-4. Continue with offset 5.
        line 3
        line 4
        "#);
        let page = cut(b"0123456789", Position { line: 1, byte: 4 }, None, 4);
        insta::assert_snapshot!(page.hint(10, Location::new("/x/trunc/a"), &Prose::of(Language::Chinese)).render(), @r#"
        [offcut/1 page@1+4 10B/1L 40+4 "/x/trunc/a"] 第 1-1 行。续读请用 offset 1+8。
        4567
        "#);
        let page = cut(b"a\nb", Position { line: 9, byte: 0 }, None, 400);
        insta::assert_snapshot!(page.hint(3, Location::new("/x/trunc/a"), &Prose::of(Language::English)).render(), @r#"[offcut/1 page@9 3B/2L 19 "/x/trunc/a"] No lines from 9 on."#);
    }

    proptest! {
        #[test]
        fn r2_pages_are_the_whole_content_without_gap_or_overlap(
            content in "([a-zé€字]{0,40}\n?){0,12}", room in 4usize..60, lines in proptest::option::of(1u64..4)
        ) {
            let (mut read, mut from, mut pages) = (String::new(), Position::START, 0);
            loop {
                let page = cut(content.as_bytes(), from, lines, room);
                prop_assert!(page.text.len() <= room);
                prop_assert_eq!(page.lines, Some(count_lines(content.as_bytes())));
                read.push_str(&page.text);
                let next = page.has_next.then_some(page.end);
                let hint = page.hint(content.len() as u64, Location::new("x"), &Prose::of(Language::English));
                prop_assert!(shows_only(&hint, content.as_bytes(), |_| None), "{hint:?}");
                let Some(next) = next else { break };
                prop_assert!(next > from);
                from = next;
                pages += 1;
                prop_assert!(pages < 1000);
            }
            prop_assert_eq!(read, content);
        }

        #[test]
        fn l7_any_bytes_can_be_paged(content in proptest::collection::vec(0u8.., 0..300), room in 12usize..60, line in 1u64..5, byte in 0u64..50) {
            let from = Position { line, byte };
            let page = cut(&content, from, None, room);
            prop_assert!(page.text.len() <= room);
            prop_assert!(!page.has_next || page.end > from);
            let mut hint = page.hint(content.len() as u64, Location::new("x"), &Prose::of(Language::English));
            prop_assert!(shows_only(&hint, &content, |_| None), "{hint:?}");
            hint.preview.push('x');
            prop_assert!(!shows_only(&hint, &content, |_| None) || content.contains(&b'x'));
        }
    }
}
