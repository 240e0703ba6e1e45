//! OpenAI's encodings, made safe for any text.

use std::collections::HashSet;

use tiktoken_rs::CoreBPE;

use super::CountTokens;

/// The most bytes that are given to the encoder at once. Its time and memory grow faster than a run of letters, signs or
/// blanks, and it fails on a million spaces. A longer text is cut at a space, where the count stays the same, or if there is
/// none, anywhere, which changes it by a few tokens at most.
const MAX_PIECE: usize = 4 * 1024;

/// An encoding of OpenAI's, by its tables: exact counts for its models, and a good estimate for others.
///
/// Names of special tokens in a text count as ordinary text. Loading the tables takes about 0.1 s and 45 MB, once for each
/// process. This happens on the first count.
pub(crate) struct Encoding(pub(crate) fn() -> &'static CoreBPE);

impl CountTokens for Encoding {
    fn count(&self, text: &str) -> u64 {
        let encoding = (self.0)();
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

/// Splits `text` into pieces of at most [`MAX_PIECE`] bytes.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let most = rest.floor_char_boundary(MAX_PIECE);
        let space = rest[..most].rfind(' ');
        let space = space.filter(|space| *space > 0 && most < rest.len());
        let (piece, after) = rest.split_at(space.unwrap_or(most));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_tokens_are_ordinary_text() {
        let tokens = Encoding(tiktoken_rs::o200k_base_singleton).count("<|endoftext|>");
        assert!(tokens > 1, "{tokens}");
    }

    #[test]
    fn l7_no_length_of_text_panics() {
        let counter = Encoding(tiktoken_rs::cl100k_base_singleton);
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
    fn long_texts_are_cut_at_spaces() {
        let words = "some more words, and 12 of them\n".repeat(1_000);
        assert!(pieces(&words).skip(1).all(|piece| piece.starts_with(' ')));
        for text in [&words, &"字".repeat(5_000), &" ".repeat(9_000), ""] {
            assert_eq!(pieces(text).collect::<String>(), *text);
            assert!(pieces(text).all(|piece| piece.len() <= MAX_PIECE));
        }
    }
}
