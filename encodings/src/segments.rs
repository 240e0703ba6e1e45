//! Stretches of text that cost the same wherever they stand, and comparison of two texts' costs without
//! counting either.
//!
//! An encoder splits a text into words and counts each on its own. So words that both texts have
//! cost the same in both. Any other word costs at least one token, and at most its bytes.

use std::collections::HashMap;

/// Returns true if `short` certainly has no more tokens than `long`, in either encoding. Takes time
/// linear in both texts, and reads no more of `long` than needed.
pub(crate) fn costs_at_most(short: &str, long: &str) -> bool {
    let (mut shared, mut most) = (HashMap::<&str, usize>::new(), 0);
    for segment in Segments(short) {
        *shared.entry(segment.text).or_default() += 1;
        most += segment.text.len();
    }
    let mut least = 0;
    for segment in Segments(long) {
        if least >= most {
            break;
        }
        match shared.get_mut(segment.text) {
            Some(left @ 1..) if segment.is_closed => {
                *left -= 1;
                most -= segment.text.len();
            }
            _ => least += segment.at_least(),
        }
    }
    least >= most
}

/// A stretch of text that encoders count the same wherever it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment<'t> {
    pub(crate) text: &'t str,
    /// Number of bytes in the run of ASCII letters or digits that ends it.
    run: usize,
    /// False for the end of a text, whose cost depends on what follows.
    is_closed: bool,
}

impl Segment<'_> {
    /// A lower bound on its tokens.
    fn at_least(self) -> usize {
        let (before, run) = self.text.split_at(self.text.len() - self.run);
        if !self.is_closed {
            return 0;
        }
        let is_number = run.as_bytes()[0].is_ascii_digit();
        let marks = before.as_bytes();
        let is_plain = marks
            .iter()
            .all(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'\'');
        match (is_plain, is_number) {
            // A word has at most three digits.
            (_, true) => run.len().div_ceil(3) + usize::from(is_plain && !marks.is_empty()),
            // A word of letters takes at most one mark with it, and never a line's end.
            (true, false) => 1 + usize::from(marks.len() > 1 || matches!(marks, [b'\n' | b'\r'])),
            (false, false) => 1,
        }
    }
}

/// The segments of a text. Each but the last ends with a run of ASCII letters before another ASCII
/// character that is neither a letter nor an apostrophe, or with a run of ASCII digits before
/// another ASCII character. A word ends there in either encoding, and finding this needs no
/// lookahead.
pub(crate) struct Segments<'t>(pub(crate) &'t str);

impl<'t> Iterator for Segments<'t> {
    type Item = Segment<'t>;

    fn next(&mut self) -> Option<Segment<'t>> {
        let bytes = self.0.as_bytes();
        if bytes.is_empty() {
            return None;
        }
        let mut at = 0;
        while at < bytes.len() {
            let of_run: fn(&u8) -> bool = match bytes[at] {
                byte if byte.is_ascii_alphabetic() => u8::is_ascii_alphabetic,
                byte if byte.is_ascii_digit() => u8::is_ascii_digit,
                _ => {
                    at += 1;
                    continue;
                }
            };
            let start = at;
            at += bytes[at..].iter().take_while(|byte| of_run(byte)).count();
            let ends_word = match bytes.get(at) {
                Some(b'\'') => bytes[start].is_ascii_digit(),
                Some(next) => next.is_ascii(),
                None => false,
            };
            if ends_word {
                let (text, rest) = self.0.split_at(at);
                self.0 = rest;
                return Some(Segment {
                    text,
                    run: at - start,
                    is_closed: true,
                });
            }
        }
        Some(Segment {
            text: std::mem::take(&mut self.0),
            run: 0,
            is_closed: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::*;
    use crate::Encoding;

    /// Texts in which words meet in every way: other scripts, marks, contractions, long runs.
    fn texts() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-zA-Z]{1,9}",
            2 => "[0-9]{1,7}",
            3 => "[ \t\r\n]{1,4}",
            3 => "[-.,:;/(){}\\[\\]\"'|_=<>#…]{1,4}",
            1 => "('s|'T|'re|'ll|'x)",
            1 => any::<char>().prop_map(String::from),
            1 => "[éßŁ字の\u{301}\u{660}٣½]{1,3}",
            1 => ("[a =字]", 1usize..9_000).prop_map(|(run, times)| run.repeat(times)),
        ];
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    fn encodings() -> [Encoding; 2] {
        [Encoding::o200k_base(), Encoding::cl100k_base()]
    }

    proptest! {
        #[test]
        fn a_text_costs_what_its_segments_cost(text in texts()) {
            for counter in encodings() {
                let mut sum = 0;
                for segment in Segments(&text) {
                    let tokens = counter.encode(segment.text);
                    prop_assert!(tokens >= segment.at_least() as u64, "{segment:?}");
                    sum += tokens;
                }
                prop_assert_eq!(sum, counter.encode(&text));
                prop_assert_eq!(sum, counter.count(&text), "met first");
                prop_assert_eq!(sum, counter.count(&text), "known");
            }
        }

        #[test]
        fn l3_estimates_without_counting_agree_with_counts(text in texts(), other in texts(), from in 0usize..300, length in 0usize..300) {
            let from = text.floor_char_boundary(from);
            let to = text.floor_char_boundary(from + length);
            let short = format!("12|{}\n{other}", &text[from..to.max(from)]);
            for (short, long) in [(&short, &text), (&text, &short), (&other, &text)] {
                if costs_at_most(short, long) {
                    for counter in encodings() {
                        prop_assert!(counter.count(short) <= counter.count(long));
                    }
                }
            }
        }
    }

    #[test]
    fn a_preview_of_a_page_needs_no_count() {
        let line = |n: u32| format!("src/lib.rs:{n}:    pub fn read_page_{n}(&self) -> Page {{\n");
        let page: String = (0..40).map(line).collect();
        let hint = format!(
            "[offcut/1 truncated 2200B/40L 39+600 \"/home/me/project/.offcut/trunc/call_1\"] Stored \
             in full. Read it with read_file.\n{}[… 1600 B …]",
            (0..10).map(line).collect::<String>()
        );
        assert!(costs_at_most(&hint, &page));
        assert!(!costs_at_most(&page, &hint));
    }
}
