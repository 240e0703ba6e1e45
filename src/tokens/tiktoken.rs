//! OpenAI's encodings, made safe for any text.

use std::collections::HashSet;
use std::fmt;
use std::sync::Once;

use tiktoken_rs::CoreBPE;

use super::{CountTokens, Effort};

/// Whether the tables of each encoding are there. They are the process's own, and never change.
static O200K_BASE: Once = Once::new();
static CL100K_BASE: Once = Once::new();

/// An unbroken run of this many bytes is cut before it is counted. The encoder's time and memory grow faster than such a run,
/// and it gives up on a million spaces. Each cut over-counts by at most one token.
const MAX_RUN: usize = 64 * 1024;

/// Exact counts for OpenAI's models, and a good measure for the others.
///
/// Names of special tokens in a text count as the ordinary text that they are. The encoding's tables take about 0.1 s and 45 MB
/// when they are first needed, and are then shared by the process; [`prepare`](CountTokens::prepare) makes them.
#[derive(Clone, Copy)]
pub struct Tiktoken {
    name: &'static str,
    encoding: fn() -> &'static CoreBPE,
    is_loaded: &'static Once,
}

impl Tiktoken {
    /// The encoding of GPT-4o and later.
    #[must_use]
    pub fn o200k_base() -> Self {
        Self { name: "o200k_base", encoding: tiktoken_rs::o200k_base_singleton, is_loaded: &O200K_BASE }
    }

    /// The encoding of GPT-4 and GPT-3.5.
    #[must_use]
    pub fn cl100k_base() -> Self {
        Self { name: "cl100k_base", encoding: tiktoken_rs::cl100k_base_singleton, is_loaded: &CL100K_BASE }
    }
}

impl fmt::Debug for Tiktoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tiktoken").field(&self.name).finish()
    }
}

impl CountTokens for Tiktoken {
    fn count(&self, text: &str) -> u64 {
        let encoding = self.tables();
        let none_special = HashSet::new();
        // Where the encoder gives up, bytes are never too few.
        pieces(text).map(|piece| encoding.count(piece, &none_special).unwrap_or(piece.len()) as u64).sum()
    }

    fn effort(&self) -> Effort {
        Effort::AtMostBytes
    }

    fn is_ready(&self) -> bool {
        self.is_loaded.is_completed()
    }

    fn prepare(&self) {
        self.tables();
    }
}

impl Tiktoken {
    /// The encoding's tables. Whoever comes first makes them; the others wait.
    fn tables(&self) -> &'static CoreBPE {
        let tables = (self.encoding)();
        self.is_loaded.call_once(|| {});
        tables
    }
}

/// `text` in pieces, cut only inside runs of more than [`MAX_RUN`] bytes of white space, or of anything else.
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
    let (mut start, mut in_space) = (0, false);
    for (at, c) in text.char_indices() {
        if c.is_whitespace() != in_space {
            (start, in_space) = (at, !in_space);
        } else if at - start >= MAX_RUN {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_tokens_are_ordinary_text() {
        let tokens = Tiktoken::o200k_base().count("<|endoftext|>");
        assert!(tokens > 1, "{tokens}");
    }

    #[test]
    fn l7_no_text_is_too_much() {
        let counter = Tiktoken::cl100k_base();
        for text in [" ".repeat(1_500_000), "a".repeat(1_500_000), "\u{3000}".repeat(400_000), "é".repeat(300_000)] {
            let tokens = counter.count(&text);
            assert!(tokens > 0 && tokens <= text.len() as u64);
        }
    }

    #[test]
    fn a_cut_costs_at_most_one_token() {
        let counter = Tiktoken::o200k_base();
        for unit in ["a", "ab1/", " ", "=-"] {
            let text = unit.repeat((MAX_RUN * 2 + 10) / unit.len());
            let cuts = pieces(&text).count() as u64 - 1;
            assert!(cuts >= 1);
            let exact = (counter.encoding)().count(&text, &HashSet::new()).unwrap() as u64;
            let counted = counter.count(&text);
            assert!((exact..=exact + cuts).contains(&counted), "{unit:?}: {counted} for {exact}");
        }
    }

    #[test]
    fn ordinary_text_is_not_cut() {
        let text = "fn main() {}\n".repeat(20_000);
        assert_eq!(pieces(&text).count(), 1);
    }
}
