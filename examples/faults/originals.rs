//! The tools' results, made from a seed, so that a checker knows every byte without storing any.

use std::fmt::Write;

/// Pseudorandom numbers that depend only on the seed.
#[derive(Clone, Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0..end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Returns true with the probability `rate`.
    pub(crate) fn chance(&mut self, rate: f64) -> bool {
        (self.below(1 << 32) as f64) < rate * (1_u64 << 32) as f64
    }
}

/// All results and arguments of one run, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Originals {
    pub(crate) seed: u64,
}

/// The form in which a result arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comes {
    Whole,
    InChunks,
}

impl Originals {
    /// Returns result `number`. Its first line contains the number.
    ///
    /// Of ten results, four are short, four have 2 to 22 kB and two are longer streams. The short
    /// ones are shown and cleared later; most of the others are truncated.
    pub(crate) fn result(self, number: u64) -> String {
        let mut numbers = Numbers::new(self.seed ^ number.wrapping_mul(0xD129_0D3C_5B7C_1A55));
        let bytes = match number % 10 {
            0..4 => 200 + numbers.below(1_200),
            4..8 => 2_000 + numbers.below(20_000),
            _ => 10_000 + numbers.below(90_000),
        };
        let mut text = format!("result {number} of {:x}\n", self.seed);
        while (text.len() as u64) < bytes {
            let (module, line, took) = (
                numbers.below(5_000),
                numbers.below(900),
                numbers.below(1 << 40),
            );
            let _ = writeln!(
                text,
                "src/module_{module}.rs:{line}: finished check_{took:x} after {} ms",
                took % 7_919
            );
        }
        text
    }

    pub(crate) fn comes(number: u64) -> Comes {
        if number % 10 < 8 {
            Comes::Whole
        } else {
            Comes::InChunks
        }
    }

    /// Returns the arguments of the call for result `number`.
    pub(crate) fn arguments(self, number: u64) -> String {
        let patch = self.patch(number);
        format!(r#"{{"number":{number},"patch":"{patch}"}}"#)
    }

    /// Returns the long string in these arguments, which is worth clearing.
    pub(crate) fn patch(self, number: u64) -> String {
        let mut numbers = Numbers::new(!self.seed ^ number.wrapping_mul(0xD129_0D3C_5B7C_1A55));
        let mut patch = format!("patch {number} of {:x}", self.seed);
        for _ in 0..60 {
            let _ = write!(patch, " replace_{:x}", numbers.below(1 << 40));
        }
        patch
    }

    /// Tells whether `bytes` are a whole result or a whole patch of this run.
    pub(crate) fn has(self, bytes: &[u8]) -> bool {
        let number = |begin: &[u8]| {
            let digits: Vec<u8> = bytes
                .strip_prefix(begin)?
                .iter()
                .copied()
                .take_while(u8::is_ascii_digit)
                .collect();
            String::from_utf8(digits).ok()?.parse::<u64>().ok()
        };
        match (number(b"result "), number(b"patch ")) {
            (Some(number), _) => bytes == self.result(number).as_bytes(),
            (_, Some(number)) => bytes == self.patch(number).as_bytes(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_original_is_identified_by_all_of_its_bytes() {
        let originals = Originals { seed: 7 };
        for number in 0..20 {
            for text in [originals.result(number), originals.patch(number)] {
                assert!(originals.has(text.as_bytes()));
                assert!(
                    !originals.has(&text.as_bytes()[..text.len() - 1]),
                    "half of a result is not a result"
                );
                assert!(!originals.has(text.replacen('_', "-", 1).as_bytes()));
                assert!(!Originals { seed: 8 }.has(text.as_bytes()));
            }
        }
        assert!(!originals.has(b""));
    }
}
