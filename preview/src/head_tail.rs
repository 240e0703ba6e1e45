//! The beginning and the end of a text.

use crate::text::lines::{Position, count_feeds};

/// A line boundary is near if it is in the `1/NEAR` of a piece next to the cut.
const NEAR: usize = 4;
/// Minimum growth in bytes before the kept tail is trimmed.
const MIN_TAIL: usize = 1024;
/// Maximum number of marks in a preview that are compared with the text.
const MAX_MARKS: usize = 16;

/// The beginning and the end of a text, collected as it arrives. Takes a few times the budget,
/// however long the text.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    budget: usize,
    /// The whole text, or at least its first `budget` bytes.
    head: String,
    /// The whole text, or at least its last `budget` bytes and the character before them.
    tail: String,
    bytes: u64,
    /// Number of line feeds that were skipped before it.
    skipped: u64,
    end: Position,
}

impl Sketch {
    /// An empty sketch for previews of at most `budget` bytes.
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            head: String::new(),
            tail: String::new(),
            bytes: 0,
            skipped: 0,
            end: Position::START,
        }
    }

    /// A sketch of `text` for previews of at most `budget` bytes.
    #[cfg(test)]
    fn of(text: &str, budget: usize) -> Self {
        let mut sketch = Self::new(budget);
        sketch.push(text);
        sketch
    }

    /// Appends `text`.
    pub(crate) fn push(&mut self, text: &str) {
        let end = Position::START.after(text.as_bytes());
        self.add(text, text, text.len() as u64, end);
    }

    pub(crate) fn skip(&mut self, text: &str) {
        self.end = Position::START.after(text.as_bytes());
        self.skipped = self.end.feeds();
    }

    /// The end of the text so far, as a place in all of it.
    pub(crate) fn end(&self) -> Position {
        self.end
    }

    /// Appends the text of `other`, a sketch made for the same budget.
    pub(crate) fn append(&mut self, other: &Self) {
        self.add(&other.head, &other.tail, other.bytes, other.end);
    }

    fn add(&mut self, head: &str, tail: &str, bytes: u64, end: Position) {
        if let Some(missing) = self
            .budget
            .checked_sub(self.head.len())
            .filter(|missing| *missing > 0)
        {
            self.head
                .push_str(&head[..head.ceil_char_boundary(missing)]);
        }
        let keep = self.budget.saturating_add(char::MAX_LEN_UTF8);
        if tail.len() >= keep || (tail.len() as u64) < bytes {
            self.tail.clear();
        }
        self.tail
            .push_str(&tail[tail.floor_char_boundary(tail.len().saturating_sub(keep))..]);
        // Trim rarely: a text may arrive byte by byte.
        if self.tail.len() > keep.saturating_mul(2).saturating_add(MIN_TAIL) {
            self.tail
                .drain(..self.tail.floor_char_boundary(self.tail.len() - keep));
        }
        self.bytes += bytes;
        self.end = self.end.join(end);
    }

    /// Length of the text so far in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of lines so far, including a last one without a line feed.
    pub(crate) fn lines(&self) -> u64 {
        self.end.lines()
    }

    /// Number of line feeds so far.
    pub(crate) fn feeds(&self) -> u64 {
        self.end.feeds()
    }

    /// A prefix of everything that [`show`](Self::show) will return for this head budget, whatever
    /// text follows.
    pub(crate) fn settled(&self, head: usize) -> &str {
        if self.head.len() >= head {
            return self::head(&self.head, head);
        }
        // No line boundary shortens the head further than this.
        let sure = head.saturating_sub(char::MAX_LEN_UTF8);
        &self.head[..self.head.floor_char_boundary(sure - sure / NEAR)]
    }

    /// Returns a preview: at most `head` bytes of the beginning, and with the end at most `budget`
    /// bytes. If the budget is too small to be useful, the preview is empty.
    pub(crate) fn show(&self, head: usize, budget: usize) -> String {
        if self.bytes <= budget as u64 {
            return self.head.clone();
        }
        // The head depends on its budget only, so that a stream can show it before its end is
        // known.
        let head = self::head(&self.head, head);
        let lines = self.lines();
        let left = budget
            .checked_sub(head.len() + marks(self.bytes, lines))
            .filter(|left| *left > 0);
        let Some(left) = left else {
            return String::new();
        };
        let tail = tail(&self.tail, left);
        let before = &self.tail[..self.tail.len() - tail.len()];
        let shown = count_feeds(head.as_bytes()) + count_feeds(tail.as_bytes());
        let gap = Gap {
            bytes: self.bytes - (head.len() + tail.len()) as u64,
            feeds: self.feeds() - self.skipped - shown,
            ends_a_line: before.ends_with('\n'),
            is_one_line: self.feeds() == 0,
        };
        gap.between(self.skipped, head, tail)
    }
}

/// Upper bound in bytes for the parts of a [`Preview::HeadTail`](crate::Preview::HeadTail) other
/// than head and tail.
#[must_use]
pub fn longest_marks() -> usize {
    marks(u64::MAX, u64::MAX)
}

/// Upper bound in bytes for the mark in a text of `bytes` bytes and `lines` lines, with the line
/// feeds around it.
fn marks(bytes: u64, lines: u64) -> usize {
    mark(bytes, lines, lines, false).len() + lines.to_string().len() + "-".len() + 2 * "\n".len()
}

#[cfg(test)]
pub(crate) fn show(text: &str, budget: usize) -> String {
    Sketch::of(text, budget).show(budget / 2, budget)
}

pub(crate) fn holds_only(preview: &str, text: &str) -> bool {
    // A mark's byte count fits at one position only. So few marks need a close look, even if an
    // imitation has many.
    let opening = "[… ";
    let fits = |(at, _): &(usize, &str)| {
        let mark = &preview[*at + opening.len()..];
        let said: Option<usize> = mark.split(' ').next().and_then(|bytes| bytes.parse().ok());
        let tail = mark.find('\n').map(|feed| mark.len() - feed - 1);
        // The line feed before the mark may belong to the text or have been added.
        said.zip(tail).is_some_and(|(said, tail)| {
            (at.saturating_sub(1)..=*at).any(|head| head + said + tail == text.len())
        })
    };
    preview
        .match_indices(opening)
        .filter(fits)
        .take(MAX_MARKS)
        .any(|(at, _)| {
            let Some((_, tail)) = preview[at..].split_once('\n') else {
                return false;
            };
            let head = &preview[..at];
            let heads = [head, head.strip_suffix('\n').unwrap_or(head)];
            heads.iter().any(|head| {
                head.len() + tail.len() < text.len()
                    && text.starts_with(head)
                    && text.ends_with(tail)
                    && join(text, head.len(), text.len() - tail.len()) == preview
            })
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

/// Joins head, mark and tail of `text`, leaving out `start..stop`.
fn join(text: &str, start: usize, stop: usize) -> String {
    let (head, gap, tail) = (&text[..start], &text[start..stop], &text[stop..]);
    let gap = Gap {
        bytes: gap.len() as u64,
        feeds: count_feeds(gap.as_bytes()),
        ends_a_line: gap.ends_with('\n'),
        is_one_line: !text.contains('\n'),
    };
    gap.between(0, head, tail)
}

/// The part left out.
struct Gap {
    bytes: u64,
    feeds: u64,
    ends_a_line: bool,
    is_one_line: bool,
}

impl Gap {
    /// `skipped` is the number of line feeds before the head.
    fn between(&self, skipped: u64, head: &str, tail: &str) -> String {
        let first = skipped + count_feeds(head.as_bytes()) + 1;
        let last = first + self.feeds - u64::from(self.ends_a_line);
        let feed = if head.is_empty() || head.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let mark = mark(self.bytes, first, last, self.is_one_line);
        format!("{head}{feed}{mark}\n{tail}")
    }
}

/// A mark for the part left out, the same in every language.
fn mark(bytes: u64, first: u64, last: u64, is_one_line: bool) -> String {
    match () {
        () if is_one_line => format!("[… {bytes} B …]"),
        () if first == last => format!("[… {bytes} B, L{first} …]"),
        () => format!("[… {bytes} B, L{first}-{last} …]"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

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
            prop_assert!(crate::holds_only(&shown, &text), "{shown:?}");
        }

        #[test]
        fn a_sketch_shows_the_same_however_it_was_fed(
            text in "([a-z€字 ]{0,30}\n?){0,60}", budget in 0usize..400, cuts in proptest::collection::vec(0usize..2_000, 0..20),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            cuts.sort_unstable();
            let (mut sketch, mut joined, mut from) = (Sketch::new(budget), Sketch::new(budget), 0);
            for cut in cuts.into_iter().chain([text.len()]) {
                sketch.push(&text[from..cut]);
                joined.append(&Sketch::of(&text[from..cut], budget));
                from = cut;
                for share in [budget, budget / 2, budget / 3] {
                    let so_far = &text[..from];
                    prop_assert_eq!(sketch.show(share / 2, share), show(so_far, share));
                    prop_assert_eq!(joined.show(share / 2, share), show(so_far, share));
                    // A budget too small gives an empty preview, without a head.
                    if share - share / 2 > longest_marks() {
                        prop_assert!(show(&text, share).starts_with(sketch.settled(share / 2)));
                    }
                }
            }
            prop_assert_eq!(sketch.lines(), crate::text::lines::count_lines(text.as_bytes()));
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
