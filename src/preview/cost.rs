//! Estimate of a text's tokens: quick, and accurate enough for choosing.

/// Estimated tokens of `text` in current encodings.
pub(crate) fn about_tokens(text: &str) -> f32 {
    let bytes = text.as_bytes();
    let mut tokens = 0.0;
    let mut at = 0;
    while at < bytes.len() {
        let first = bytes[at];
        let run = |is: fn(u8) -> bool, from: usize| {
            bytes[from..].iter().take_while(|byte| is(**byte)).count()
        };
        let (length, cost) = match first {
            b'a'..=b'z' | b'A'..=b'Z' => {
                let upper = run(|byte| byte.is_ascii_uppercase(), at);
                let lower = run(|byte| byte.is_ascii_lowercase(), at + upper);
                let mut cost = 0.0;
                if upper > 1 || lower == 0 {
                    cost += 1.0 + beyond(upper, 3) * 0.3;
                }
                if lower > 0 {
                    cost += 1.0 + beyond(lower, 6) * 0.13;
                }
                (upper + lower, cost)
            }
            b'0'..=b'9' => {
                let digits = run(|byte| byte.is_ascii_digit(), at);
                (digits, digits.div_ceil(3) as f32)
            }
            // One space belongs to the next word.
            b' ' | b'\t' => {
                let spaces = run(|byte| matches!(byte, b' ' | b'\t'), at);
                let is_token = spaces > 1 || at + spaces == bytes.len();
                (spaces, f32::from(u8::from(is_token)))
            }
            0x21..=0x7e => {
                let marks = run(|byte| byte.is_ascii_punctuation(), at);
                let is_before_word = bytes.get(at + marks).is_some_and(u8::is_ascii_alphabetic);
                let cost = if marks == 1 && is_before_word {
                    0.35
                } else {
                    1.0 + beyond(marks, 3) * 0.25
                };
                (marks, cost)
            }
            // Other scripts: somewhat less than a token per character.
            0xc0.. => (1, 0.8),
            0x80.. => (1, 0.0),
            _ => (1, 1.0),
        };
        at += length;
        tokens += cost;
    }
    tokens
}

fn beyond(length: usize, free: usize) -> f32 {
    length.saturating_sub(free) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_passed_once() {
        for byte in 0..128u8 {
            assert!(about_tokens(&char::from(byte).to_string()) >= 0.0);
        }
        assert!(about_tokens("fn read_back(&self)") < about_tokens("9f8e7d6c5b4a39281"));
        assert!((about_tokens("字字字字") - 3.2).abs() < 0.01);
    }
}
