//! Token costs of texts, parts and conversations.
//!
//! The counter is exact for the model family it was made for, and a good estimate for others.
//! Counts are cached by text, so counting a message again costs only a hash of its bytes.
//!
//! # Cost of a message
//!
//! | | tokens |
//! |---|---|
//! | a message | 4, and its texts: content, reasoning, refusals |
//! | a call | its name and its arguments |
//! | a result | its content |
//! | a JSON part, a part of an unknown kind, a tool's schema | its compact text, without bytes of media and signatures |
//! | an image | the higher of OpenAI's and Anthropic's rules for its size; 1399 if unknown |
//! | other media | a token for each 40 bytes |
//! | a link to media | as an image of unknown size, and its URL |
//!
//! The 4 tokens stand for what chat formats add to a message: a role and two marks (OpenAI's
//! cookbook, "How to count tokens with tiktoken", has 3 and the role). Providers render calls and
//! schemas in their own, unpublished forms. If the loop knows the provider's last count, that count
//! anchors the sum: see [`Turn::last_usage`](crate::Turn::last_usage).

#[cfg(feature = "tiktoken")]
mod encoding;
mod image;
mod meter;
mod payload;

#[cfg(feature = "tiktoken")]
pub(crate) use encoding::Encoding;
pub(crate) use meter::{Meter, PER_MESSAGE, Text};

/// Counts tokens. Closures are counters: `|text: &str| text.len() as u64 / 4`.
///
/// The same text must always cost the same. If a counter panics, the text's length in bytes is
/// used.
pub trait CountTokens: Send + Sync + 'static {
    /// Number of tokens of `text`. May take long for a long text: a pass counts large new texts on
    /// a thread that may block.
    fn count(&self, text: &str) -> u64;

    /// Returns true if no text costs more tokens than it has bytes. A conversation that this proves
    /// to be within the threshold is then not counted at all. The default is `false`.
    fn never_exceeds_bytes(&self) -> bool {
        false
    }
}

impl<F: Fn(&str) -> u64 + Send + Sync + 'static> CountTokens for F {
    fn count(&self, text: &str) -> u64 {
        self(text)
    }
}

/// A quarter of the bytes, rounded up. Needs no tables and almost no time, but counts 27 % too few
/// tokens for JSON and 26 % too few for Chinese.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate;

impl CountTokens for Estimate {
    fn count(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(4)
    }
}
