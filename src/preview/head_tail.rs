//! The beginning and the end of a text.

use crate::hint::count_lines;

/// The share of a piece in which a line boundary counts as near.
const NEAR: usize = 4;
/// How many marks of a text are compared with another text, at most.
const MAX_MARKS: usize = 16;

pub(super) fn show(text: &str, budget: usize) -> String {
    if text.len() <= budget {
        return text.to_owned();
    }
    // The head depends on the budget alone, so that a stream can show it before its end is known.
    let head = head(text, budget / 2);
    let lines = count_lines(text.as_bytes());
    let longest_mark = Gap { bytes: text.len(), first: lines, last: lines, is_one_line: false };
    let marks = longest_mark.render().len() + lines.to_string().len() + "-".len() + 2 * "\n".len();
    let Some(left) = budget.checked_sub(head.len() + marks).filter(|left| *left > 0) else {
        return String::new();
    };
    let tail = tail(text, left);
    join(text, head.len(), text.len() - tail.len())
}

pub(super) fn holds_only(preview: &str, text: &str) -> bool {
    // A mark that says how much is left out stands at one place only. So few places need to be looked at closely, however
    // many marks an imitation has.
    let opening = "[… ";
    let fits = |(at, _): &(usize, &str)| {
        let mark = &preview[*at + opening.len()..];
        let said: Option<usize> = mark.split(' ').next().and_then(|bytes| bytes.parse().ok());
        let tail = mark.find('\n').map(|feed| mark.len() - feed - 1);
        // A line feed before the mark is the text's own or was put there.
        said.zip(tail)
            .is_some_and(|(said, tail)| (at.saturating_sub(1)..=*at).any(|head| head + said + tail == text.len()))
    };
    preview.match_indices(opening).filter(fits).take(MAX_MARKS).any(|(at, _)| {
        let Some((_, tail)) = preview[at..].split_once('\n') else { return false };
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

/// Head, mark and tail of `text`, with `start..stop` left out.
fn join(text: &str, start: usize, stop: usize) -> String {
    let (head, gap, tail) = (&text[..start], &text[start..stop], &text[stop..]);
    let first = head.bytes().filter(|b| *b == b'\n').count() as u64 + 1;
    let feeds = gap.bytes().filter(|b| *b == b'\n').count() as u64;
    let last = first + feeds - u64::from(gap.ends_with('\n'));
    let is_one_line = !text.contains('\n');
    let feed = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    let mark = Gap { bytes: gap.len(), first, last, is_one_line }.render();
    format!("{head}{feed}{mark}\n{tail}")
}

/// What is left out. The mark is the same in every language.
struct Gap {
    bytes: usize,
    first: u64,
    last: u64,
    is_one_line: bool,
}

impl Gap {
    fn render(&self) -> String {
        let Self { bytes, first, last, is_one_line } = self;
        match () {
            () if *is_one_line => format!("[… {bytes} B …]"),
            () if first == last => format!("[… {bytes} B, L{first} …]"),
            () => format!("[… {bytes} B, L{first}-{last} …]"),
        }
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
        assert!(shown.starts_with("字字") && shown.ends_with('字'), "{shown}");
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
        fn the_head_does_not_depend_on_what_follows(text in "([a-z]{0,30}\n?){20,60}", more in any::<[u8; 4]>()) {
            let budget = 120;
            let longer = format!("{text}{}", more.map(|byte| byte.to_string()).concat());
            if text.len() > budget {
                prop_assert_eq!(head(&text, budget / 2), head(&longer, budget / 2));
            }
        }
    }
}
