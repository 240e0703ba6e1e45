//! The tokens of a text that arrives in pieces, counted as far as they matter.

use crate::tokens::Meter;

/// Length in bytes of the pieces in which a long text is counted.
const PIECE: usize = 32 * 1024;
/// Maximum number of tokens that a cut may add to those of the whole text.
const PER_CUT: u64 = 8;

/// The number up to which tokens are counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counts {
    /// All tokens of a text of at most this many bytes. Replacing a longer text always gains.
    Bytes(usize),
    /// Tokens up to this number, as the text arrives. Any text with more is over the limit.
    Tokens(u64),
}

/// The tokens of a text that arrives in pieces.
#[derive(Clone, Debug)]
pub(super) struct TokenSum {
    counts: Counts,
    /// Text not counted yet.
    pending: String,
    /// Number of tokens counted.
    pub(super) sum: u64,
    cuts: u64,
    /// `true` if there are more tokens than [`Counts`] asks for.
    pub(super) has_stopped: bool,
}

impl TokenSum {
    pub(super) fn new(counts: Counts) -> Self {
        Self {
            counts,
            pending: String::new(),
            sum: 0,
            cuts: 0,
            has_stopped: false,
        }
    }

    pub(super) fn push(&mut self, text: &str, meter: &Meter) {
        match self.counts {
            _ if self.has_stopped => {}
            Counts::Bytes(most) if self.pending.len() + text.len() > most => self.stop_counting(),
            Counts::Bytes(_) => self.pending.push_str(text),
            Counts::Tokens(most) => self.count(text, most, meter),
        }
    }

    /// Returns `true` if a part of the text was counted by itself.
    pub(super) fn is_in_pieces(&self) -> bool {
        self.cuts > 0
    }

    /// The whole text, if it is recorded and short enough.
    pub(super) fn noted(&self) -> Option<&str> {
        let is_whole = matches!(self.counts, Counts::Bytes(_)) && !self.has_stopped;
        is_whole.then_some(&*self.pending)
    }

    fn stop_counting(&mut self) {
        self.has_stopped = true;
        self.pending = String::new();
    }

    fn count(&mut self, mut text: &str, most: u64, meter: &Meter) {
        loop {
            let room = PIECE - self.pending.len();
            if text.len() <= room {
                return self.pending.push_str(text);
            }
            let (piece, rest) = text.split_at(text.floor_char_boundary(room));
            self.pending.push_str(piece);
            self.sum = self.sum.saturating_add(meter.count_uncached(&self.pending));
            self.pending.clear();
            self.cuts += 1;
            if self.sum.saturating_sub(PER_CUT * self.cuts) > most {
                return self.stop_counting();
            }
            text = rest;
        }
    }

    /// The total, counted in pieces, as far as it matters.
    pub(super) fn total(&self, meter: &Meter) -> u64 {
        match self.cuts {
            _ if self.has_stopped => self.sum,
            0 => meter.count_str(&self.pending),
            _ => self.sum.saturating_add(meter.count_uncached(&self.pending)),
        }
    }

    pub(super) fn at_least(&self, meter: &Meter) -> u64 {
        if self.has_stopped {
            u64::MAX
        } else {
            self.total(meter).saturating_sub(PER_CUT * self.cuts)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::tokens::Estimate;

    proptest! {
        #[test]
        fn chunks_do_not_change_the_token_sum(size in 1usize..50_000, length in 0usize..200_000, most in 0u64..60_000) {
            let meter = Meter::new(Arc::new(Estimate));
            let text = "abcdefg hijk€".repeat(length / 13);
            let sum = |chunk: usize, counts| {
                let mut sum = TokenSum::new(counts);
                let mut rest = text.as_str();
                while !rest.is_empty() {
                    let (piece, tail) = rest.split_at(rest.ceil_char_boundary(chunk.min(rest.len())));
                    sum.push(piece, &meter);
                    rest = tail;
                }
                (sum.total(&meter), sum.at_least(&meter), sum.has_stopped)
            };
            for counts in [Counts::Bytes(50_000), Counts::Tokens(most)] {
                let (total, at_least, has_stopped) = sum(size, counts);
                prop_assert_eq!((total, at_least, has_stopped), sum(usize::MAX, counts));
                prop_assert!(has_stopped || at_least <= meter.count_str(&text));
            }
            let (total, _, has_stopped) = sum(size, Counts::Tokens(most));
            prop_assert!(!has_stopped || total > most && meter.count_str(&text) > most);
        }
    }
}
