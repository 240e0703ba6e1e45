//! Decoding of bytes that arrive in chunks and may not be UTF-8.

/// Decodes chunks of bytes into text. Their boundaries make no difference: the result equals
/// [`String::from_utf8_lossy`] of all bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The first `length` bytes of a character that is not complete yet.
    begun: [u8; char::MAX_LEN_UTF8],
    length: usize,
    has_invalid: bool,
}

impl Decoder {
    /// Decodes `bytes`, which follow the earlier ones, and calls `see` with each piece of their text.
    pub fn feed(&mut self, mut bytes: &[u8], see: &mut impl FnMut(&str)) {
        // Byte by byte up to the end of the character, so that a long chunk is not copied.
        while self.length > 0
            && let Some((byte, rest)) = bytes.split_first()
        {
            // The character was not complete, so there is room for one more byte.
            self.begun[self.length] = *byte;
            let (begun, length) = (self.begun, std::mem::take(&mut self.length) + 1);
            self.decode(&begun[..length], see);
            bytes = rest;
        }
        self.decode(bytes, see);
    }

    fn decode(&mut self, bytes: &[u8], see: &mut impl FnMut(&str)) {
        let mut left = bytes.len();
        for chunk in bytes.utf8_chunks() {
            let (valid, invalid) = (chunk.valid(), chunk.invalid());
            left -= valid.len() + invalid.len();
            if !valid.is_empty() {
                see(valid);
            }
            if left == 0 && is_begun(invalid) {
                self.length = invalid.len();
                self.begun[..self.length].copy_from_slice(invalid);
            } else if !invalid.is_empty() {
                self.invalid(see);
            }
        }
    }

    fn invalid(&mut self, see: &mut impl FnMut(&str)) {
        self.has_invalid = true;
        see(REPLACEMENT);
    }

    /// Ends the text. An incomplete character becomes a replacement character.
    pub fn end(&mut self, see: &mut impl FnMut(&str)) {
        if std::mem::take(&mut self.length) > 0 {
            self.invalid(see);
        }
    }

    /// Number of bytes at the end that begin a character and were not passed on yet.
    pub fn pending(&self) -> usize {
        self.length
    }

    /// Returns true if everything decoded so far is UTF-8.
    pub fn is_utf8(&self) -> bool {
        !self.has_invalid
    }
}

const REPLACEMENT: &str = "\u{fffd}";

/// Returns true if more bytes could complete these to a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Number of `bytes` that the first `shown` bytes of their text stand for. Invalid UTF-8 is shown
/// as replacement characters.
pub fn bytes_shown_as(bytes: &[u8], shown: usize) -> usize {
    let (mut at, mut seen) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        let (valid, invalid) = (chunk.valid().len(), chunk.invalid().len());
        if seen + valid >= shown {
            return at + shown.saturating_sub(seen);
        }
        at += valid + invalid;
        seen += valid;
        if invalid > 0 {
            seen += REPLACEMENT.len();
        }
    }
    at
}

/// The last boundary between characters up to `at`. If none is near, as in bytes that are not
/// UTF-8, it is `at` itself. Never 0 unless `at` is, so that callers make progress.
pub fn char_end(bytes: &[u8], at: usize) -> usize {
    let is_boundary = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let first = at.saturating_sub(char::MAX_LEN_UTF8 - 1).max(1);
    (first..=at).rev().find(is_boundary).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    fn decode<'b>(chunks: impl Iterator<Item = &'b [u8]>) -> (String, bool) {
        let (mut decoder, mut text) = (Decoder::default(), String::new());
        for chunk in chunks {
            decoder.feed(chunk, &mut |piece| text.push_str(piece));
        }
        decoder.end(&mut |piece| text.push_str(piece));
        (text, decoder.is_utf8())
    }

    #[test]
    fn bytes_become_text_whatever_the_chunks() {
        let texts: [&[u8]; 8] = [
            "a€😀é".as_bytes(),
            b"\xf0\x9f\x98",
            b"\xf0\x9f\x98\xf0\x9f\x98\x80",
            b"\xed\xa0\x80x",
            b"\xff\xc3(\xe2\x82",
            b"\xe2\x82\xac\xe2\x82",
            b"\xf4\x90\x80\x80",
            b"",
        ];
        for text in texts {
            for size in 1..6 {
                let should = String::from_utf8_lossy(text);
                assert_eq!(
                    decode(text.chunks(size)),
                    (should.to_string(), std::str::from_utf8(text).is_ok())
                );
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_become_text_whatever_the_chunks(bytes in any::<Vec<u8>>(), size in 1usize..8) {
            let bytes: Vec<u8> = bytes.iter().map(|byte| [b'a', 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, *byte][usize::from(*byte) % 8]).collect();
            let should = String::from_utf8_lossy(&bytes).into_owned();
            prop_assert_eq!(decode(bytes.chunks(size)), (should, std::str::from_utf8(&bytes).is_ok()));
        }
    }
}
