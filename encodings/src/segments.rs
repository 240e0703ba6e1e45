//! Stretches of text that cost the same wherever they stand: an encoder splits a text into words and
//! counts each on its own.

/// The segments of a text. Each but the last ends with a run of ASCII letters before another ASCII
/// character that is neither a letter nor an apostrophe, or with a run of ASCII digits before
/// another ASCII character. A word ends there in either encoding, and finding this needs no
/// lookahead.
pub(crate) struct Segments<'t>(pub(crate) &'t str);

impl<'t> Iterator for Segments<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
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
                return Some(text);
            }
        }
        Some(std::mem::take(&mut self.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};

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
                    sum += counter.encode(segment);
                }
                prop_assert_eq!(sum, counter.encode(&text));
                prop_assert_eq!(sum, counter.count(&text), "met first");
                prop_assert_eq!(sum, counter.count(&text), "known");
            }
        }
    }
}
