//! OpenAI's encodings, made safe for any text.

use std::collections::HashSet;
use std::fmt;

use tiktoken_rs::CoreBPE;

use super::CountTokens;

/// The longest run, in bytes, that is given to the encoder as one word. Longer runs are cut first:
/// the encoder's time and memory grow faster than the run, and it fails on a million spaces. Each
/// cut changes the count by a few tokens at most, up or down.
const MAX_RUN: usize = 4 * 1024;

/// An encoding of OpenAI's: exact counts for its models, and a good estimate for others.
///
/// Names of special tokens in a text count as ordinary text. Loading an encoding's tables takes
/// about 0.1 s and 45 MB, once for each process. This happens on the first count.
#[derive(Clone, Copy)]
pub struct Encoding {
    name: &'static str,
    tables: fn() -> &'static CoreBPE,
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoding({})", self.name)
    }
}

impl Encoding {
    /// The encoding of GPT-4o and later.
    #[must_use]
    pub fn o200k_base() -> Self {
        Self {
            name: "o200k_base",
            tables: tiktoken_rs::o200k_base_singleton,
        }
    }

    /// The encoding of GPT-4 and GPT-3.5.
    #[must_use]
    pub fn cl100k_base() -> Self {
        Self {
            name: "cl100k_base",
            tables: tiktoken_rs::cl100k_base_singleton,
        }
    }
}

impl CountTokens for Encoding {
    fn count(&self, text: &str) -> u64 {
        let encoding = (self.tables)();
        let none_special = HashSet::new();
        // If the encoder fails, use the number of bytes, which is never too low.
        pieces(text)
            .map(|piece| encoding.count(piece, &none_special).unwrap_or(piece.len()) as u64)
            .sum()
    }

    fn never_exceeds_bytes(&self) -> bool {
        true
    }
}

/// Splits `text` into pieces. Cuts only within runs of more than [`MAX_RUN`] bytes that the encoder
/// may treat as one word.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, tail) = rest.split_at(first_cut(rest));
        rest = tail;
        Some(piece)
    })
}

fn first_cut(text: &str) -> usize {
    if text.len() <= MAX_RUN {
        return text.len();
    }
    let (mut start, mut kinds) = (0, 0);
    for (at, c) in text.char_indices() {
        match kinds & kinds_of(c) {
            0 => (start, kinds) = (at, kinds_of(c)),
            _ if at - start >= MAX_RUN => return at,
            shared => kinds = shared,
        }
    }
    text.len()
}

/// The kinds of word, as bits, that `c` may belong to. Encoders first split a text into words of a
/// single kind: whitespace, letters or symbols. Digits have no kind here, since a word has at most
/// three.
fn kinds_of(c: char) -> u8 {
    const SPACE: u8 = 1;
    const LETTERS: u8 = 2;
    const SIGNS: u8 = 4;
    match c {
        'a'..='z' | 'A'..='Z' => LETTERS,
        '0'..='9' => 0,
        c if c.is_whitespace() => SPACE,
        c if c.is_ascii() => SIGNS,
        c if c.is_numeric() => 0,
        // Combining marks can be in either kind, and recognizing other letters would take tables.
        _ => LETTERS | SIGNS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_name() {
        assert_eq!(
            format!("{:?}", Encoding::o200k_base()),
            "Encoding(o200k_base)"
        );
    }

    #[test]
    fn special_tokens_are_ordinary_text() {
        let tokens = Encoding::o200k_base().count("<|endoftext|>");
        assert!(tokens > 1, "{tokens}");
    }

    #[test]
    fn l7_no_length_of_text_panics() {
        let counter = Encoding::cl100k_base();
        for text in [
            " ".repeat(1_500_000),
            "a".repeat(1_500_000),
            "\u{3000}".repeat(400_000),
            "é".repeat(300_000),
        ] {
            let tokens = counter.count(&text);
            assert!(tokens > 0 && tokens <= text.len() as u64);
        }
    }

    #[test]
    fn only_runs_that_may_be_one_word_are_cut() {
        let long = 5 * MAX_RUN;
        let words = [
            "fn main() {}\n",
            "a1",
            "a=",
            "= ",
            "a ",
            "\u{2460}x",
            "iVBORw0KGgo/",
            "{\"a\":1},",
        ];
        for whole in words {
            assert_eq!(
                pieces(&whole.repeat(long / whole.len())).count(),
                1,
                "{whole:?}"
            );
        }
        for run in [
            "a",
            "aB",
            "=/",
            " ",
            "\r\n\t ",
            "字",
            "，",
            "字，",
            "a\u{301}",
            "=\u{301}",
            "👩‍👩‍👧",
            "👩=",
        ] {
            let text = run.repeat(long / run.len());
            assert!(pieces(&text).count() >= 5, "{run:?}");
            assert_eq!(pieces(&text).collect::<String>(), text);
            assert!(
                pieces(&text).all(|piece| piece.len() < MAX_RUN + 4),
                "{run:?}"
            );
        }
    }
}
