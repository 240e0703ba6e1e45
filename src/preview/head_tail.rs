//! The beginning and the end of a text, with the lines between them that report failures.

use crate::preview::plain::Piece;
use crate::preview::signs::may_be_failure;
use crate::preview::text::lines::{Length, Position, count_feeds};
use crate::preview::units::{CUT, Place, Unit, mark_of};

/// A line boundary is near if it is in the `1/NEAR` of a piece next to the cut.
const NEAR: usize = 4;
/// Minimum growth in bytes before the kept tail is trimmed.
const MIN_TAIL: usize = 1024;
/// One part in so many of what is left after the head is for lines that report failures.
const FAILING: usize = 3;
/// Minimum length in bytes of such a line that is shown cut.
const MIN_CUT: usize = 40;
/// Maximum number of marks in a preview that are compared with the text.
const MAX_MARKS: usize = 16;

/// The beginning and the end of a text, collected as it arrives. Takes a few times the budget,
/// however long the text.
#[derive(Clone, Debug)]
pub(crate) struct HeadTailSketch {
    budget: usize,
    /// The whole text, or at least its first `budget` bytes.
    head: String,
    /// The whole text, or at least its last `budget` bytes and the character before them.
    tail: String,
    length: Length,
}

impl HeadTailSketch {
    /// An empty sketch for previews of at most `budget` bytes.
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            head: String::new(),
            tail: String::new(),
            length: Length::of(""),
        }
    }

    /// Appends `piece`.
    pub(crate) fn push(&mut self, piece: Piece<'_>) {
        let text = piece.text;
        let missing = self.budget.saturating_sub(self.head.len());
        self.head += &text[..text.ceil_char_boundary(missing)];
        let keep = self.budget.saturating_add(char::MAX_LEN_UTF8);
        if text.len() >= keep {
            self.tail.clear();
        }
        let from = text.len().saturating_sub(keep);
        self.tail += &text[text.floor_char_boundary(from)..];
        // Trim rarely: a text may arrive byte by byte.
        if self.tail.len() > keep.saturating_mul(2).saturating_add(MIN_TAIL) {
            let over = self.tail.len().saturating_sub(keep);
            self.tail.drain(..self.tail.floor_char_boundary(over));
        }
        self.length = self.length.join(Length::of(text));
    }

    /// Length of the text so far in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.length.bytes
    }

    /// Returns a preview of at most `budget` bytes: the beginning, in up to half of them, the lines that
    /// report failures, and the end. If the budget is too small to be useful, it is empty.
    pub(crate) fn show<'f>(
        &self,
        budget: usize,
        failing: impl Iterator<Item = Unit<'f>>,
    ) -> String {
        let Length { bytes, end } = self.length;
        if bytes <= budget as u64 {
            return self.head.clone();
        }
        let head = head(&self.head, budget / 2);
        let lines = end.lines();
        let longest_mark = format!("\n[… {bytes} B, L{lines}-{lines} …]\n");
        let left = budget.saturating_sub(head.len() + longest_mark.len());
        if left == 0 {
            return String::new();
        }
        let first = count_feeds(head.as_bytes()) + 1;
        // Of a line in pieces, the head may have some.
        let is_line = |place: Place| place.byte == 0 && place.ends_line;
        let failing = failing.filter(|unit| is_line(unit.place) || !head.contains(unit.text));
        let mut between = between(failing, first, left / FAILING);
        let lengths = between.iter().map(|(_, line)| line.len() + "\n".len());
        // The mark before them ends with a colon.
        let taken = lengths.sum::<usize>() + usize::from(!between.is_empty());
        let tail = tail(&self.tail, left - taken);
        let before = &self.tail[..self.tail.len() - tail.len()];
        let shown = count_feeds(head.as_bytes()) + count_feeds(tail.as_bytes());
        let gap = Gap {
            bytes: bytes - (head.len() + tail.len()) as u64,
            feeds: end.feeds() - shown,
            ends_a_line: before.ends_with('\n'),
            is_one_line: end.feeds() == 0,
        };
        let last = gap.last(first);
        between.retain(|(place, _)| place.line <= last);
        between.sort_unstable();
        let lines = between.iter().map(|(_, line)| format!("{line}\n"));
        let lines: String = lines.collect();
        gap.between(head, &lines, tail)
    }
}

/// The lines of `failing` from line `first` on, each with its mark, that take at most `most` bytes, the last of them cut
/// in the middle if need be.
fn between<'f>(
    failing: impl Iterator<Item = Unit<'f>>,
    first: u64,
    most: usize,
) -> Vec<(Place, String)> {
    let mut between = Vec::new();
    let mut left = most.saturating_sub(":\n".len());
    for unit in failing.filter(|unit| unit.place.line >= first) {
        let (line, byte) = (unit.place.line, unit.place.byte);
        // Of a piece, the line that reports.
        let is_piece = byte > 0;
        let told = unit.lines().find(|line| is_piece && may_be_failure(line));
        let text = told.unwrap_or(unit.text);
        let byte = byte + unit.text.find(text).unwrap_or(0) as u64;
        let mark = mark_of(Position { line, byte });
        let room = left.checked_sub(mark.len() + "\n".len());
        let Some(room) = room.filter(|room| *room >= text.len().min(MIN_CUT)) else {
            break;
        };
        let is_whole = unit.place.ends_line && !is_piece;
        let text = match text.len() <= room {
            true if is_whole => text.to_owned(),
            true if text.len() + CUT.len() <= room => format!("{text}{CUT}"),
            _ => cut(text, room, is_whole),
        };
        let line = mark + &text;
        left = left.saturating_sub(line.len() + "\n".len());
        between.push((unit.place, line));
    }
    between
}

/// The beginning of a line in at most `most` bytes, and its end if it `ends` there.
fn cut(line: &str, most: usize, ends: bool) -> String {
    let most = most.saturating_sub(CUT.len());
    let end = if ends { most / NEAR } else { 0 };
    without_middle(line, most - end, end)
}

/// The first `begin` bytes of a longer line, and its last `end`.
pub(crate) fn without_middle(line: &str, begin: usize, end: usize) -> String {
    let begins = &line[..line.floor_char_boundary(begin)];
    let ends = &line[line.ceil_char_boundary(line.len() - end)..];
    format!("{begins}{CUT}{ends}")
}

/// Returns true if `preview` is the head and the tail of `text`, which is plain, and lines between
/// them.
pub(crate) fn holds_only(preview: &str, text: &str) -> bool {
    // A mark's byte count fits at one position only. So few marks need a close look, even if an
    // imitation has many.
    let mark = |(at, opening): (usize, &str)| {
        let mark = &preview[at + opening.len()..];
        let said: usize = mark.split([' ', ',']).next()?.parse().ok()?;
        let (mark, rest) = mark.split_once('\n')?;
        let (lines, tail) = if mark.ends_with(':') {
            // Each line begins with its number, so this is none of them.
            let mut ends = rest.match_indices(LINES_END);
            let (end, _) = ends.find(|(end, _)| rest[..*end].ends_with('\n'))?;
            (&rest[..end], &rest[end + LINES_END.len()..])
        } else {
            ("", rest)
        };
        // The line feed before the mark may belong to the text or have been added.
        let fits = |head: &usize| head + said + tail.len() == text.len();
        let head = (at.saturating_sub(1)..=at).find(fits)?;
        Some((head, lines, tail))
    };
    let marks = preview.match_indices("[… ").filter_map(mark);
    marks.take(MAX_MARKS).any(|(head, lines, tail)| {
        text.is_char_boundary(head)
            && preview.starts_with(&text[..head])
            && text.ends_with(tail)
            && are_lines(lines, text)
            && join(text, head, lines, text.len() - tail.len()) == preview
    })
}

/// Returns true if these are lines of `text` under their numbers, in order, each whole or cut, or pieces of them.
fn are_lines(lines: &str, text: &str) -> bool {
    let mut all = text.split('\n').zip(1..).peekable();
    // A line may end with a return.
    lines.split_terminator('\n').all(|shown| {
        let Some((place, shown)) = shown.split_once('|') else {
            return false;
        };
        let Some(place) = Position::parse(place) else {
            return false;
        };
        let wanted = place.line;
        while all.next_if(|(_, at)| *at < wanted).is_some() {}
        let Some(line) = all.peek().filter(|(_, at)| *at == wanted) else {
            return false;
        };
        if place.byte > 0 {
            let piece = shown.strip_prefix(CUT);
            let piece = piece.map(|piece| piece.strip_suffix(CUT).unwrap_or(piece));
            return piece.is_some_and(|piece| line.0.contains(piece));
        }
        let is_cut = |(at, _): (usize, &str)| {
            let (begins, ends) = (&shown[..at], &shown[at + CUT.len()..]);
            begins.len() + ends.len() < line.0.len()
                && line.0.starts_with(begins)
                && line.0.ends_with(ends)
        };
        line.0 == shown || shown.match_indices(CUT).take(MAX_MARKS).any(is_cut)
    })
}

fn head(text: &str, budget: usize) -> &str {
    let piece = &text[..text.floor_char_boundary(budget)];
    match piece.rfind('\n') {
        Some(feed) if piece.len() - feed <= piece.len() / NEAR => &piece[..=feed],
        _ => piece,
    }
}

fn tail(text: &str, budget: usize) -> &str {
    let start = text.ceil_char_boundary(text.len() - budget);
    let piece = &text[start..];
    if text[..start].ends_with('\n') {
        return piece;
    }
    match piece.find('\n') {
        Some(feed) if feed < piece.len() / NEAR => &piece[feed + 1..],
        _ => piece,
    }
}

/// Joins head, mark and tail of `text`, leaving out `start..stop` but for these lines.
fn join(text: &str, start: usize, lines: &str, stop: usize) -> String {
    let (head, gap, tail) = (&text[..start], &text[start..stop], &text[stop..]);
    let gap = Gap {
        bytes: gap.len() as u64,
        feeds: count_feeds(gap.as_bytes()),
        ends_a_line: gap.ends_with('\n'),
        is_one_line: !text.contains('\n'),
    };
    gap.between(head, lines, tail)
}

/// The part left out.
struct Gap {
    bytes: u64,
    feeds: u64,
    ends_a_line: bool,
    is_one_line: bool,
}

impl Gap {
    /// The number of its last line.
    fn last(&self, first: u64) -> u64 {
        first + self.feeds - u64::from(self.ends_a_line)
    }

    fn between(&self, head: &str, lines: &str, tail: &str) -> String {
        let first = count_feeds(head.as_bytes()) + 1;
        let ends = head.is_empty() || head.ends_with('\n');
        let feed = if ends { "" } else { "\n" };
        let last = self.last(first);
        let place = if self.is_one_line {
            String::new()
        } else if first == last {
            format!(", L{first}")
        } else {
            format!(", L{first}-{last}")
        };
        let mark = format!("{head}{feed}[… {} B{place}", self.bytes);
        if lines.is_empty() {
            format!("{mark} …]\n{tail}")
        } else {
            format!("{mark}:\n{lines}{LINES_END}{tail}")
        }
    }
}

/// The end of the lines in a mark.
const LINES_END: &str = "…]\n";

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn sketch(text: &str, budget: usize) -> HeadTailSketch {
        let mut sketch = HeadTailSketch::new(budget);
        sketch.push(Piece::plain(text));
        sketch
    }

    fn show(text: &str, budget: usize) -> String {
        sketch(text, budget).show(budget, std::iter::empty())
    }

    #[test]
    fn one_long_line_is_cut_inside() {
        insta::assert_snapshot!(show(&"abcdefghij".repeat(100), 60), @"
        abcdefghijabcdefghijabcdefghij
        [… 964 B …]
        efghij
        ");
    }

    #[test]
    fn characters_are_not_cut() {
        let shown = show(&"字".repeat(100), 61);
        assert!(
            shown.starts_with("字字") && shown.ends_with('字'),
            "{shown}"
        );
    }

    #[test]
    fn a_budget_for_nothing_shows_nothing() {
        for budget in 0..12 {
            assert_eq!(show(&"x\n".repeat(100), budget), "");
        }
    }

    #[test]
    fn an_imitation_is_told_apart() {
        let text: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
        let real = show(&text, 200);
        assert!(holds_only(&real, &text));
        assert!(!holds_only(&real.replace("line 2\n", "line X\n"), &text));
        assert!(!holds_only(&format!("{real}more"), &text));
        assert!(!holds_only(&format!("[… 1 B, L1 …]\n{real}"), &text));
        assert!(!holds_only(&real.replace(" B, L", "0 B, L"), &text));
    }

    proptest! {
        #[test]
        fn budgets_are_kept_and_previews_known_again(text in "([a-z€字 ]{0,30}\n?){0,60}", budget in 0usize..400) {
            let shown = show(&text, budget);
            prop_assert!(shown.len() <= budget || shown == text && text.len() <= budget);
            prop_assert!(crate::preview::holds_only(&shown, &text), "{shown:?}");
        }

        #[test]
        fn a_sketch_shows_the_same_however_it_was_fed(
            text in "([a-z€字 ]{0,30}\n?){0,60}", budget in 0usize..400, cuts in proptest::collection::vec(0usize..2_000, 0..20),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            cuts.sort_unstable();
            let (mut sketch, mut from) = (HeadTailSketch::new(budget), 0);
            for cut in cuts.into_iter().chain([text.len()]) {
                sketch.push(Piece::plain(&text[from..cut]));
                from = cut;
                for share in [budget, budget / 2, budget / 3] {
                    let so_far = &text[..from];
                    prop_assert_eq!(sketch.show(share, std::iter::empty()), show(so_far, share));
                }
            }
        }

        #[test]
        fn the_head_does_not_depend_on_what_follows(text in "([a-z]{0,30}\n?){20,60}", more in any::<[u8; 4]>()) {
            let budget = 120;
            let longer = format!("{text}{}", more.map(|byte| byte.to_string()).concat());
            if text.len() > budget {
                prop_assert_eq!(head(&text, budget / 2), head(&longer, budget / 2));
            }
        }
    }
}
