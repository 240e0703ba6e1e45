//! The lines of stored content that match a pattern.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use regex::bytes::{Regex, RegexBuilder};

use crate::backend::Location;
use crate::hint::{Hint, Kind, Position, Prose};

/// Longer lines are searched in windows of this many bytes, so that memory stays bounded.
const MAX_LINE: usize = 64 << 10;
/// Number of bytes of a window that are searched again with the next one. A match across two
/// windows is found if it is no longer than this.
const OVERLAP: usize = 1 << 10;
/// A match across lines is found if it is no longer than this, in bytes.
const MAX_MATCH: usize = 64 << 10;
/// Number of bytes before a match that a pattern may look at: one character.
const LOOK_BEHIND: usize = 4;
/// A search may take this long, and longer while it manages [`MIN_BYTES_PER_SECOND`] bytes a second.
/// The time is linear in the text, but also in the pattern, which a model wrote.
const PATIENCE: Duration = Duration::from_secs(2);
const MIN_BYTES_PER_SECOND: u64 = 1 << 20;
/// Bytes shown of a long line, around a match.
const EXCERPT: usize = 400;
/// An upper bound on the bytes of a row in addition to the line: its position, a colon, two cuts and
/// a line feed.
const MAX_ROW_OVERHEAD: usize = 56;
/// Marks a cut in a long line.
const CUT: char = '…';

/// The part of the matches to show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Wanted {
    /// Without a pattern, lines.
    pub(super) max_rows: Option<u64>,
    /// Number of lines before and after each match to show with it.
    pub(super) context: u64,
    /// Only the number of matching lines, and of matches if those are more.
    pub(super) count_only: bool,
}

/// Compiles a pattern, in which `^` and `$` are the ends of a line.
pub(super) fn compile(pattern: &str, size_limit: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .multi_line(true)
        .crlf(true)
        .size_limit(size_limit)
        .build()
}

/// Returns true if a pattern is meant to match more than one line: it names the line feed, or lets
/// something that stands for any character match it.
pub(super) fn crosses_lines(pattern: &str) -> bool {
    let signs = ["\n", r"\n", r"\s\S", r"\S\s", r"\d\D", r"\w\W"];
    let has_flag = |group: &str| {
        let mut flags = group.bytes().take_while(u8::is_ascii_alphabetic);
        flags.any(|flag| flag == b's')
    };
    signs.iter().any(|sign| pattern.contains(sign)) || pattern.split("(?").skip(1).any(has_flag)
}

/// The time that a search may take.
#[derive(Debug, Default)]
struct Patience {
    spent: Duration,
    searched: u64,
    is_out: bool,
}

impl Patience {
    fn ask(&mut self, begun: Instant) -> bool {
        self.is_out |= is_too_costly(self.spent + begun.elapsed(), self.searched);
        !self.is_out
    }
}

/// A search for matches of more than one line, which finds them before their lines are shown.
#[derive(Debug, Default)]
struct Across {
    /// Content in which matches may begin that are not found yet, from `unsearched` on.
    window: Vec<u8>,
    unsearched: usize,
    /// The place of the window in the content.
    at: u64,
    /// The places of matches whose lines are not shown yet, in order.
    found: VecDeque<Range<u64>>,
}

impl Across {
    /// Takes from the window the bytes in which no further match can begin. The windows are the same for
    /// any blocks, and so are the matches.
    fn search(&mut self, pattern: &Regex, ends: bool, patience: &mut Patience) -> Vec<u8> {
        let begun = Instant::now();
        let mut ready = 0;
        while !self.window.is_empty() {
            let rest = &self.window[ready..];
            let (window, stop) = match rest.get(..2 * MAX_MATCH) {
                Some(window) => (window, MAX_MATCH),
                None if ends => (rest, rest.len()),
                None => break,
            };
            let mut at = self.unsearched;
            while let Some(found) = pattern.find_at(window, at)
                && found.start() < stop
                && patience.ask(begun)
            {
                let start = self.at + found.start() as u64;
                at = found.end().max(found.start() + 1);
                self.found.push_back(start..self.at + at as u64);
            }
            let is_last = stop == rest.len();
            let done = stop - if is_last { 0 } else { LOOK_BEHIND };
            self.unsearched = at.max(stop) - done;
            self.at += done as u64;
            ready += done;
            if !patience.ask(begun) || is_last {
                break;
            }
        }
        patience.spent += begun.elapsed();
        self.window.drain(..ready).collect()
    }

    /// The first match in the part of a line that begins at `place` in the content, from `at` on.
    fn find_at(&mut self, place: u64, line: &[u8], at: usize) -> Option<Range<usize>> {
        let from = place + at as u64;
        while self.found.front().is_some_and(|found| found.end <= from) {
            self.found.pop_front();
        }
        let found = self.found.front()?;
        let within = |at: u64| usize::try_from(at.saturating_sub(place)).unwrap_or(usize::MAX);
        (within(found.start) <= line.len())
            .then(|| within(found.start).max(at)..within(found.end).min(line.len()))
    }
}

/// Finds matching lines in content that arrives in blocks. Holds only the page and one line, or twice
/// [`MAX_MATCH`] if matches may cross lines, however long the content is.
#[derive(Debug)]
pub(super) struct Finder {
    pattern: Regex,
    across: Option<Across>,
    from: Position,
    shows: Wanted,
    room: usize,
    /// Rows of the beginnings of the lines before the current one, for `context`.
    before: VecDeque<String>,
    /// The last line for which a match asks as `context`.
    context_to: u64,
    /// Number of the current line. `pending` holds the part of it that is not searched yet.
    line: u64,
    pending: Vec<u8>,
    /// The place of `pending` in the line, and that of the line in the content.
    pending_at: u64,
    line_at: u64,
    /// The place in the line before which matches are shown already, or not wanted.
    wanted: u64,
    shown: String,
    rows: u64,
    /// Number of lines with a match that is shown.
    count: u64,
    /// Number of matches, if only they are counted. One across lines is one in each of them.
    matches: u64,
    /// The line of the last row.
    last: u64,
    /// The first match that is not shown.
    next: Option<Position>,
    patience: Patience,
}

impl Finder {
    /// Finds `pattern` within lines, or also across them.
    pub(super) fn new(
        pattern: Regex,
        across_lines: bool,
        from: Position,
        shows: Wanted,
        room: usize,
    ) -> Self {
        Self {
            pattern,
            across: across_lines.then(Across::default),
            from,
            shows,
            room,
            before: VecDeque::new(),
            context_to: 0,
            line: 1,
            pending: Vec::new(),
            pending_at: 0,
            line_at: 0,
            wanted: if from.line == 1 { from.byte } else { 0 },
            shown: String::new(),
            rows: 0,
            count: 0,
            matches: 0,
            last: 0,
            next: None,
            patience: Patience::default(),
        }
    }

    /// Takes the next block. Returns true if it needs more.
    pub(super) fn push(&mut self, block: &[u8]) -> bool {
        let Some(across) = &mut self.across else {
            return self.push_lines(block);
        };
        across.window.extend_from_slice(block);
        let ready = across.search(&self.pattern, false, &mut self.patience);
        self.push_lines(&ready)
    }

    fn push_lines(&mut self, block: &[u8]) -> bool {
        let begun = Instant::now();
        for piece in block
            .split_inclusive(|byte| *byte == b'\n')
            .flat_map(|line| line.chunks(MAX_LINE - OVERLAP))
        {
            self.pending.extend_from_slice(piece);
            let ends = piece.ends_with(b"\n");
            if ends || self.pending.len() >= MAX_LINE {
                self.search(ends);
            }
            if self.next.is_some() || !self.patience.ask(begun) {
                return false;
            }
        }
        self.patience.spent += begun.elapsed();
        true
    }

    fn search(&mut self, ends: bool) {
        let pending = std::mem::take(&mut self.pending);
        let line = pending.strip_suffix(b"\n").unwrap_or(&pending);
        // Matches that begin inside of the overlap are found in the next window.
        let kept = if ends { 0 } else { OVERLAP.min(line.len()) };
        // Lines without bytes, and those before the first wanted one, take time too.
        self.patience.searched += (pending.len() - kept) as u64;
        if self.line >= self.from.line {
            self.find_in(line, line.len() + 1 - kept, ends);
        }
        if self.shows.context > 0 && self.pending_at == 0 {
            self.keep_as_context(line, ends);
        }
        if ends {
            self.line += 1;
            self.line_at += self.pending_at + pending.len() as u64;
            self.pending_at = 0;
            let is_first = self.line == self.from.line;
            self.wanted = if is_first { self.from.byte } else { 0 };
        } else {
            self.pending_at += (line.len() - kept) as u64;
            self.pending.extend_from_slice(&line[line.len() - kept..]);
        }
    }

    /// Shows the matches in a window of a line that begin before `stop`.
    fn find_in(&mut self, line: &[u8], stop: usize, ends: bool) {
        let wanted = self.wanted.saturating_sub(self.pending_at);
        // A window in the middle of a line has no beginning of a line. A match at its first byte is found before.
        let mut at = usize::try_from(wanted)
            .unwrap_or(usize::MAX)
            .max(usize::from(self.pending_at > 0));
        let begun = Instant::now();
        while at <= line.len()
            && let Some(found) = match &mut self.across {
                None => self.pattern.find_at(line, at).map(|found| found.range()),
                Some(across) => across.find_at(self.line_at + self.pending_at, line, at),
            }
            && found.start < stop
        {
            let is_first = self.last != self.line;
            let end = if self.shows.count_only {
                if self.across.is_none() {
                    // An empty match after another does not count.
                    self.matches += u64::from(is_first || !found.is_empty());
                }
                0
            } else if let Some(end) = self.show(line, found.start, ends) {
                end
            } else {
                return;
            };
            self.count += u64::from(is_first);
            self.last = self.line;
            at = end.max(found.end).max(found.start + 1);
            self.wanted = self.pending_at + at as u64;
            // A pattern may look far beyond each match.
            if !self.patience.ask(begun) {
                return;
            }
        }
    }

    /// Shows a row for the match at `at` in a window of a line, and returns the end of what it shows. `None` if
    /// there is no room for it.
    fn show(&mut self, line: &[u8], at: usize, ends: bool) -> Option<usize> {
        // One row fits, however little room there is. Otherwise a reader could never get past it.
        let width = EXCERPT.min(self.room.saturating_sub(MAX_ROW_OVERHEAD));
        let is_short = self.pending_at == 0 && ends && line.len() <= width;
        let text = String::from_utf8_lossy(line);
        let place = self.pending_at + at as u64;
        let (row, end) = if is_short {
            (format!("{}:{text}\n", self.line), line.len() + 1)
        } else {
            let cut = excerpt(&text, at, width, self.pending_at > 0, ends);
            // Matches that the row shows get no row of their own.
            let end = at + (width - width / 4);
            (format!("{}+{place}:{cut}\n", self.line), end)
        };
        let is_enough = self.shows.max_rows.is_some_and(|most| self.rows >= most);
        let row = self.with_context(row);
        if is_enough || self.shown.len() + row.len() > self.room {
            let (line, byte) = (self.line, if is_short { 0 } else { place });
            self.next = Some(Position { line, byte });
            return None;
        }
        self.shown.push_str(&row);
        self.before.clear();
        self.context_to = self.line.saturating_add(self.shows.context);
        self.rows += 1;
        Some(end)
    }

    /// Puts the lines before a match above its row, if they fit.
    fn with_context(&self, row: String) -> String {
        let before = self.before.iter().cloned();
        let rows: String = before.chain([row.clone()]).collect();
        if rows.len() <= self.room { rows } else { row }
    }

    /// Shows a line after a match, or keeps it for a match below it.
    fn keep_as_context(&mut self, line: &[u8], ends: bool) {
        if self.last == self.line || self.next.is_some() {
            return;
        }
        let text = String::from_utf8_lossy(&line[..line.len().min(EXCERPT + 4)]);
        let text = excerpt(&text, 0, EXCERPT, false, ends);
        let row = format!("{}-{text}\n", self.line);
        if self.line <= self.context_to && self.shown.len() + row.len() <= self.room {
            self.shown.push_str(&row);
        } else {
            self.context_to = 0;
            self.before.push_back(row);
            if self.before.len() as u64 > self.shows.context {
                self.before.pop_front();
            }
        }
    }

    /// The matches found in stored content of `bytes` bytes. `None` if the search took too long and was given up.
    pub(super) fn finish(mut self, bytes: u64, location: Location, prose: &Prose) -> Option<Hint> {
        if let Some(across) = &mut self.across
            && self.next.is_none()
        {
            let rest = across.search(&self.pattern, true, &mut self.patience);
            self.push_lines(&rest);
        }
        // The last line may have no end.
        if !self.pending.is_empty() && self.next.is_none() {
            self.search(true);
        }
        if self.patience.is_out {
            return None;
        }
        let mut hint = Hint::new(Kind::Matches, bytes);
        hint.location = Some(location);
        hint.prose = prose.of_matches(self.count, self.matches, self.next);
        self.shown.pop();
        hint.preview = self.shown;
        Some(hint)
    }
}

fn is_too_costly(spent: Duration, searched: u64) -> bool {
    spent > PATIENCE && (searched as f64) < spent.as_secs_f64() * MIN_BYTES_PER_SECOND as f64
}

/// The shown part of a window of a line: `width` bytes around byte `at`. Marks what is cut, also
/// before and after the window.
fn excerpt(line: &str, at: usize, width: usize, goes_before: bool, ends: bool) -> String {
    let start = at
        .saturating_sub(width / 4)
        .min(line.len().saturating_sub(width));
    // Neither end goes beyond the width, and the match is after the first.
    let stop = line.floor_char_boundary(start + width);
    let start = line.ceil_char_boundary(start);
    let mut out = String::with_capacity(width + 2 * CUT.len_utf8());
    out.extend((start > 0 || goes_before).then_some(CUT));
    out.push_str(&line[start..stop]);
    out.extend((stop < line.len() || !ends).then_some(CUT));
    out
}

/// Returns true if every one of these rows is a line of the content with its number.
pub(super) fn are_of(rows: &str, content: &[u8]) -> bool {
    let mut lines = content.split(|byte| *byte == b'\n').zip(1u64..);
    let mut current = lines.next();
    let mut rows = rows.split('\n').filter(|_| !rows.is_empty());
    rows.all(|row| {
        let Some(at) = row.find([':', '-']) else {
            return false;
        };
        let (place, shown) = (&row[..at], &row[at + 1..]);
        let number = place.split('+').next().unwrap_or_default();
        while current.is_some_and(|(_, line)| line.to_string() != number) {
            current = lines.next();
        }
        current.is_some_and(|(line, _)| {
            let line = String::from_utf8_lossy(line);
            let excerpt = shown.strip_prefix(CUT).unwrap_or(shown);
            let excerpt = excerpt.strip_suffix(CUT).unwrap_or(excerpt);
            line == shown || excerpt.len() <= EXCERPT && line.contains(excerpt)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::shows_only;
    use super::*;
    use crate::hint::Language;

    /// The offset of the next page, which a sentence ends with.
    fn next_position(prose: &str) -> Option<Position> {
        let (_, next) = prose.trim_end_matches('.').split_once("offset ")?;
        Position::parse(next)
    }

    fn find(content: &[u8], pattern: &str, from: u64, max: Option<u64>, room: usize) -> Hint {
        let from = Position {
            line: from,
            byte: 0,
        };
        let wanted = Wanted {
            max_rows: max,
            ..Wanted::default()
        };
        let mut finder = Finder::new(
            compile(pattern, 1 << 20).unwrap(),
            crosses_lines(pattern),
            from,
            wanted,
            room,
        );
        for block in content.chunks(5) {
            finder.push(block);
        }
        let hint = finder.finish(
            content.len() as u64,
            Location::new("/x/trunc/a"),
            &Prose::of(Language::English),
        );
        hint.unwrap()
    }

    #[test]
    fn the_end_of_a_long_line_is_shown_whatever_its_signs() {
        for sign in ["я", "€", "🦀", "\u{2028}"] {
            for filler in 0..4 {
                let line = format!(
                    "{}{}order_id=1234567890",
                    "x".repeat(filler),
                    sign.repeat(400)
                );
                let found = find(line.as_bytes(), r"order_id=\d+", 1, None, 4_000);
                assert!(
                    found.preview.ends_with("order_id=1234567890"),
                    "{}",
                    found.preview
                );
                assert!(shows_only(&found, line.as_bytes(), |_| None));
            }
        }
        let found = find(b"a\r\nb\r\n", "b$", 1, None, 4_000);
        assert_eq!(found.preview, "2:b\r");
    }

    #[test]
    fn r4_matching_lines_come_with_their_numbers() {
        let content = b"fn one\nlet a\nfn two\nlet b\nfn three";
        insta::assert_snapshot!(find(content, "^fn", 1, None, 500).render(), @r#"
        [offcut/1 matches 34B 18+28 "/x/trunc/a"] Matching lines: 3.
        1:fn one
        3:fn two
        5:fn three
        "#);
        insta::assert_snapshot!(find(content, "^fn", 2, Some(1), 500).render(), @r#"
        [offcut/1 matches 34B 49+8 "/x/trunc/a"] Matching lines so far: 1. Continue with offset 5.
        3:fn two
        "#);
        insta::assert_snapshot!(find(content, "absent", 1, None, 500).render(), @r#"[offcut/1 matches 34B 18 "/x/trunc/a"] Matching lines: 0."#);
    }

    #[test]
    fn r4_a_match_in_a_huge_line_is_shown_with_its_surroundings() {
        let line = format!("{}needle{}", "x".repeat(3_000_000), "y".repeat(1_000));
        let hint = find(line.as_bytes(), "needle", 1, None, 1_000);
        assert!(
            hint.preview.contains("needle") && hint.preview.len() < 420,
            "{}",
            hint.preview.len()
        );
        assert!(shows_only(&hint, line.as_bytes(), |_| None));
    }

    #[test]
    fn r4_matches_in_a_line_are_counted() {
        let long = "{\"status\":\"failed\"},".repeat(20_000);
        for (content, pattern, said) in [
            ("ab ab\nab\nb", "ab", "Matching lines: 2, matches: 3."),
            ("ab\nab", "a", "Matching lines: 2."),
            ("ab\n\nab", ".*", "Matching lines: 3."),
            ("a.a\na.", r"(?s)a.", "Matching lines: 2."),
            (&long, "failed", "Matching lines: 1, matches: 20000."),
        ] {
            let wanted = Wanted {
                count_only: true,
                ..Wanted::default()
            };
            let compiled = compile(pattern, 1 << 20).unwrap();
            let across = crosses_lines(pattern);
            let mut finder = Finder::new(compiled, across, Position::START, wanted, 500);
            let mut blocks = content.as_bytes().chunks(7_000);
            assert!(blocks.all(|block| finder.push(block)));
            let (at, prose) = (Location::new("/x"), Prose::of(Language::English));
            let hint = finder.finish(content.len() as u64, at, &prose).unwrap();
            assert_eq!(hint.prose, said, "{pattern}");
            assert!(shows_only(&hint, content.as_bytes(), |_| None));
        }
    }

    #[test]
    fn r4_a_match_is_found_wherever_windows_end() {
        let pattern = Regex::new("needle").unwrap();
        // With blocks of this size, windows end at these places too.
        let ends = (0..4 * MAX_LINE).step_by(OVERLAP / 2);
        for at in ends.flat_map(|at| [at, at + OVERLAP / 3]) {
            let line = format!("{}needle{}", "x".repeat(at), "y".repeat(2 * MAX_LINE));
            let mut finder = Finder::new(
                pattern.clone(),
                false,
                Position::START,
                Wanted::default(),
                1_000,
            );
            assert!(
                line.as_bytes()
                    .chunks(MAX_LINE)
                    .all(|block| finder.push(block))
            );
            let hint = finder.finish(0, Location::new("/x"), &Prose::of(Language::English));
            let hint = hint.unwrap();
            assert!(
                hint.preview.starts_with(&format!("1+{at}:")),
                "{at}: {:.20}",
                hint.preview
            );
            assert_eq!(hint.preview.lines().count(), 1, "{at}");
        }
    }

    #[test]
    fn r4_every_match_in_a_long_line_is_reached() {
        let places = [0, 700, 30_000, MAX_LINE - 3, 2 * MAX_LINE, 3 * MAX_LINE + 5];
        let mut line = vec![b'.'; 4 * MAX_LINE];
        places
            .iter()
            .for_each(|at| line[*at..at + 6].copy_from_slice(b"needle"));
        let content = [b"needle\n", &line[..], b"\nneedle"].concat();
        let pattern = Regex::new("needle").unwrap();
        for room in [500, 1_000, 16_000] {
            let (mut from, mut seen, mut pages) = (Position::START, Vec::new(), 0);
            loop {
                let mut finder = Finder::new(pattern.clone(), false, from, Wanted::default(), room);
                content
                    .chunks(10_000)
                    .take_while(|block| finder.push(block))
                    .count();
                let next = finder.next;
                let english = Prose::of(Language::English);
                let hint = finder.finish(content.len() as u64, Location::new("/x"), &english);
                let hint = hint.unwrap();
                assert!(shows_only(&hint, &content, |_| None), "{hint:?}");
                let rows = hint.preview.lines().filter_map(|row| row.split_once(':'));
                seen.extend(rows.map(|(place, _)| place.to_owned()));
                pages += 1;
                let next = next.or_else(|| next_position(&hint.prose));
                match next {
                    Some(next) if pages < 20 => from = next,
                    _ => break,
                }
            }
            let mut expected = vec!["1".to_owned()];
            expected.extend(places.iter().map(|at| format!("2+{at}")));
            expected.push("3".to_owned());
            assert_eq!(seen, expected, "{room}");
        }
        let mut finder = Finder::new(
            Regex::new("^").unwrap(),
            false,
            Position { line: 2, byte: 0 },
            Wanted::default(),
            1_000,
        );
        content
            .chunks(10_000)
            .for_each(|block| _ = finder.push(block));
        assert_eq!(finder.rows, 1, "a window is not a line");
    }

    #[test]
    fn r4_a_pattern_may_be_slow_for_a_while() {
        let seconds = Duration::from_secs;
        assert!(!is_too_costly(seconds(2), 1), "patience");
        assert!(is_too_costly(seconds(3), 1 << 20));
        assert!(!is_too_costly(seconds(3), 3 << 20), "much text takes long");
        let mut finder = Finder::new(
            Regex::new("x").unwrap(),
            false,
            Position::START,
            Wanted::default(),
            1_000,
        );
        finder.patience.spent = seconds(60);
        assert!(!finder.push(&vec![b'y'; 4 * MAX_LINE]));
        let prose = Prose::of(Language::English);
        assert!(finder.finish(1, Location::new("/x"), &prose).is_none());
    }

    #[test]
    fn r4_a_match_across_lines_shows_all_its_lines() {
        let content = b"fn one {\n  1\n}\n\nfn two {\n  2\n}\nlast";
        insta::assert_snapshot!(find(content, r"(?s)^fn.*?^\}", 1, None, 500).preview, @"
        1:fn one {
        2:  1
        3:}
        5:fn two {
        6:  2
        7:}
        ");
        insta::assert_snapshot!(find(content, r"(?s)^fn.*?^\}", 2, Some(3), 500).render(), @r#"
        [offcut/1 matches 35B 49+20 "/x/trunc/a"] Matching lines so far: 3. Continue with offset 6.
        2:  1
        3:}
        5:fn two {
        "#);
        insta::assert_snapshot!(find(content, r"\}\n\n|last\n?", 1, None, 500).preview, @"
        3:}
        4:
        8:last
        ");
    }

    #[test]
    fn r4_patterns_for_several_lines_say_so() {
        for pattern in [
            "a\nb",
            r"a\s*\n",
            "(?s)a.*b",
            "(?is)a",
            "(?ms:a.b)",
            r"a[\s\S]*?b",
        ] {
            assert!(crosses_lines(pattern), "{pattern}");
        }
        for pattern in [
            "a.*b", r"a\sb", "(?i)a", "(?P<s>a)", "(?<s>a)", "(?-s)a", "(s)",
        ] {
            assert!(!crosses_lines(pattern), "{pattern}");
        }
    }

    #[test]
    fn r4_a_match_across_lines_is_found_wherever_windows_end() {
        const LINE: &str = "............................\n";
        let longest = format!("begin\n{}end\n", LINE.repeat(MAX_MATCH / LINE.len() - 1));
        for (planted, lines) in [
            ("begin\n-\nend\n", 3),
            (&longest, MAX_MATCH / LINE.len() + 1),
        ] {
            for before in (0..3 * MAX_MATCH / LINE.len()).step_by(97) {
                let content = [&LINE.repeat(before), planted, &LINE.repeat(9_000)].concat();
                let wanted = Wanted {
                    count_only: true,
                    ..Wanted::default()
                };
                let pattern = compile("(?s)^begin$.*?^end$", 1 << 20).unwrap();
                let mut finder = Finder::new(pattern, true, Position::START, wanted, 1_000);
                let blocks = content.as_bytes().chunks(50_000 + before);
                assert!(blocks.into_iter().all(|block| finder.push(block)));
                let prose = Prose::of(Language::English);
                let hint = finder.finish(content.len() as u64, Location::new("/x"), &prose);
                assert_eq!(
                    hint.unwrap().prose,
                    format!("Matching lines: {lines}."),
                    "{before}"
                );
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn r4_pages_of_matches_across_lines_are_all_lines_that_a_match_touches(
            content in "([ab]{0,3}\n?){0,30}",
            pattern in proptest::sample::select(vec![r"a\nb", r"(?s)a.*?b", r"\n\n", r"(?s)ab.*ab", r"b\n|a", r"^\n", r"(?s)^a.?$"]),
            rows in 1u64..4,
        ) {
            let matches: Vec<_> = compile(pattern, 1 << 20)
                .unwrap()
                .find_iter(content.as_bytes())
                .map(|found| found.start()..found.end().max(found.start() + 1))
                .collect();
            let (mut begins, mut expected) = (0, Vec::new());
            for (line, number) in content.split_inclusive('\n').zip(1u64..) {
                let ends = begins + line.len();
                if matches.iter().any(|found| found.start < ends && found.end > begins) {
                    expected.push(format!("{number}:{}", line.trim_end_matches('\n')));
                }
                begins = ends;
            }
            let (mut from, mut seen) = (1, Vec::new());
            loop {
                let hint = find(content.as_bytes(), pattern, from, Some(rows), 500);
                proptest::prop_assert!(shows_only(&hint, content.as_bytes(), |_| None), "{hint:?}");
                seen.extend(hint.preview.lines().map(str::to_owned));
                match next_position(&hint.prose) {
                    Some(next) => from = next.line,
                    None => break,
                }
            }
            proptest::prop_assert_eq!(seen, expected);
        }
    }

    #[test]
    fn imitations_of_matches_are_recognized() {
        let content = b"fn one\nlet a\nfn two";
        let real = find(content, "fn", 1, Some(1), 500);
        assert!(shows_only(&real, content, |_| None));
        for preview in [
            "1:fn two",
            "secret",
            "2:fn one",
            "4711:",
            "1:fn one\n1x:",
            "3:fn two\n1:fn one",
        ] {
            let mut fake = real.clone();
            fake.preview = preview.into();
            assert!(!shows_only(&fake, content, |_| None), "{preview}");
        }
    }
}
