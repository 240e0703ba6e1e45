//! Decoding of bytes that arrive in chunks and may not be UTF-8.

use std::borrow::Cow;

/// Number of bytes that tell what the others are.
const FIRST: usize = 64;
/// Minimum number of bytes that do without a byte-order mark.
const MIN_FIRST: usize = 16;

/// Decodes chunks of bytes into text: UTF-16, told by its byte-order mark or by the NUL in most of its
/// first characters, or else UTF-8. The chunks' boundaries make no difference: the result equals
/// [`text_of`] all bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    /// `None` until enough has come to tell.
    utf16: Option<Option<Utf16>>,
    /// The bytes before that, or of a character that is not complete yet.
    open: Vec<u8>,
    has_invalid: bool,
}

/// The order of bytes in UTF-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Utf16 {
    LittleEndian,
    BigEndian,
}

impl Utf16 {
    /// `None` if a text that begins with `bytes` is something else.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            // This one is UTF-32.
            [0xff, 0xfe, 0, 0, ..] => return None,
            [0xff, 0xfe, ..] => return Some(Self::LittleEndian),
            [0xfe, 0xff, ..] => return Some(Self::BigEndian),
            _ => {}
        }
        let first = &bytes[..bytes.len().min(FIRST)];
        let nul = |from: usize| {
            let bytes = first.iter().skip(from).step_by(2);
            bytes.filter(|byte| **byte == 0).count()
        };
        let is_most = |count: usize| count * 4 >= first.len() / 2 * 3;
        let is_rare = |count: usize| count * 8 <= first.len() / 2;
        match (nul(0), nul(1)) {
            _ if first.len() < MIN_FIRST => None,
            (even, odd) if is_rare(even) && is_most(odd) => Some(Self::LittleEndian),
            (even, odd) if is_most(even) && is_rare(odd) => Some(Self::BigEndian),
            _ => None,
        }
    }

    fn unit(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::LittleEndian => u16::from_le_bytes(bytes),
            Self::BigEndian => u16::from_be_bytes(bytes),
        }
    }
}

/// The text of `bytes`, as a [`Decoder`] gives it.
#[must_use]
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if Utf16::of(bytes).is_none() {
        return String::from_utf8_lossy(bytes);
    }
    let (mut decoder, mut text) = (Decoder::default(), String::new());
    decoder.feed(bytes, &mut |piece| text.push_str(piece));
    decoder.end(&mut |piece| text.push_str(piece));
    Cow::Owned(text)
}

/// Returns true if a text that begins with `bytes` is UTF-16.
#[must_use]
pub fn is_utf16(bytes: &[u8]) -> bool {
    Utf16::of(bytes).is_some()
}

impl Decoder {
    /// Decodes `bytes`, which follow the earlier ones, and calls `see` with each piece of their text.
    pub fn feed(&mut self, bytes: &[u8], see: &mut impl FnMut(&str)) {
        self.open.extend_from_slice(bytes);
        if self.utf16.is_some() || self.open.len() >= FIRST {
            self.decode(see);
        }
    }

    /// Decodes what has come but for a character at its end that is not complete, which stays open.
    fn decode(&mut self, see: &mut impl FnMut(&str)) {
        let come = std::mem::take(&mut self.open);
        let mut bytes = &*come;
        if self.utf16.is_none() {
            self.utf16 = Some(Utf16::of(bytes));
            if let (Some(Some(_)), [0xff, 0xfe, rest @ ..] | [0xfe, 0xff, rest @ ..]) =
                (self.utf16, bytes)
            {
                bytes = rest;
            }
        }
        let (text, open) = match self.utf16.flatten() {
            Some(order) => decode_utf16(order, bytes),
            None => decode_utf8(bytes),
        };
        // A borrowed text is as it came.
        self.has_invalid |= matches!(text, Cow::Owned(_));
        if !text.is_empty() {
            see(&text);
        }
        self.open = open.to_vec();
    }

    /// Ends the text. An incomplete character becomes a replacement character.
    pub fn end(&mut self, see: &mut impl FnMut(&str)) {
        self.decode(see);
        if !std::mem::take(&mut self.open).is_empty() {
            self.has_invalid = true;
            see("\u{fffd}");
        }
    }

    /// Returns true if everything decoded so far is UTF-8.
    pub fn is_utf8(&self) -> bool {
        !self.has_invalid
    }
}

/// The text of `bytes` but for a character at their end that is not complete, and that one.
fn decode_utf8(bytes: &[u8]) -> (Cow<'_, str>, &[u8]) {
    let last = bytes.utf8_chunks().last();
    let invalid = last.map_or(0, |chunk| chunk.invalid().len());
    let (whole, open) = bytes.split_at(bytes.len() - invalid);
    // More bytes could complete these to a character.
    let is_begun = std::str::from_utf8(open).is_err_and(|error| error.error_len().is_none());
    if is_begun {
        (String::from_utf8_lossy(whole), open)
    } else {
        (String::from_utf8_lossy(bytes), &[])
    }
}

/// The same in UTF-16.
fn decode_utf16(order: Utf16, bytes: &[u8]) -> (Cow<'_, str>, &[u8]) {
    let (pairs, _) = bytes.as_chunks::<2>();
    let pairs = match pairs {
        // The first half of a character of two waits for the second.
        [whole @ .., last] if (0xd800..0xdc00).contains(&order.unit(*last)) => whole,
        whole => whole,
    };
    let text: String = char::decode_utf16(pairs.iter().map(|pair| order.unit(*pair)))
        .map(|sign| sign.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    (text.into(), &bytes[2 * pairs.len()..])
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

    #[test]
    fn utf16_becomes_text_whatever_the_chunks() {
        let text = "Zeile 1\r\n€ 😀 and plain words, and 😀 after the first bytes\n";
        let units = || text.encode_utf16();
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        let marked = |mark: [u8; 2], bytes: &[u8]| [&mark, bytes].concat();
        for bytes in [
            marked([0xff, 0xfe], &little),
            marked([0xfe, 0xff], &big),
            little.clone(),
            big,
        ] {
            for size in 1..9 {
                assert_eq!(decode(bytes.chunks(size)), (text.to_owned(), false));
            }
            assert_eq!(text_of(&bytes), text);
        }
        // Half a character at the end, and a lone half inside.
        let cut = marked([0xff, 0xfe], &little[..little.len() - 1]);
        assert!(text_of(&cut).ends_with("bytes\u{fffd}"));
        // A lone half inside, after the first bytes.
        let long = [&marked([0xff, 0xfe], &little)[..], b"\x3d\xd8a\0"].concat();
        assert!(text_of(&long).ends_with("bytes\n\u{fffd}a"));
        for other in [
            &b"\xff\xfe\0\0a\0\0\0"[..],
            b"a\0b\0",
            b"one\0two\0three\0four\0five\0six",
        ] {
            assert_eq!(text_of(other), String::from_utf8_lossy(other));
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
