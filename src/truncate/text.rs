//! One text of a result, as it comes.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use super::token_sum::{Counts, TokenSum};
use crate::content::Part;
use crate::preview::Sketch;
use crate::tokens::Meter;

/// A text of a result, as far as it has come: what is known of it, and where its bytes are.
#[derive(Debug)]
pub(super) struct Text {
    /// The JSON document that it is the text of.
    pub(super) json: Option<Value>,
    /// `true` if it comes in chunks, rather than as one part.
    pub(super) comes_in_chunks: bool,
    /// `true` if it is several texts, and so can't stay as it is.
    pub(super) is_several: bool,
    /// Its beginning, end and whatever else a preview may show.
    pub(super) sketch: Sketch,
    pub(super) content: Content,
    /// Its bytes as they came, which is not what is shown of bytes that are no UTF-8.
    pub(super) bytes: u64,
    decoder: Decoder,
    tokens: TokenSum,
}

/// The place of a text's bytes.
#[derive(Debug)]
pub(super) enum Content {
    Memory(Vec<u8>),
    /// In what was spilled, from here on.
    Spilled(u64),
    /// The store failed; they are nowhere.
    Lost,
}

impl Text {
    /// A text without anything yet.
    pub(super) fn new(sketch: Sketch, counts: Counts) -> Self {
        Self {
            json: None,
            comes_in_chunks: false,
            is_several: false,
            sketch,
            content: Content::Memory(Vec::new()),
            bytes: 0,
            decoder: Decoder::default(),
            tokens: TokenSum::new(counts),
        }
    }

    /// The text goes on. Its bytes are put where the others are by whoever has them.
    pub(super) fn see(&mut self, bytes: &[u8], meter: &Meter) {
        let Self {
            sketch,
            tokens,
            decoder,
            ..
        } = self;
        decoder.feed(bytes, &mut |text| {
            sketch.push(text);
            tokens.push(text, meter);
        });
        self.bytes += bytes.len() as u64;
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self, meter: &Meter) {
        let Self {
            sketch,
            tokens,
            decoder,
            ..
        } = self;
        decoder.end(&mut |text| {
            sketch.push(text);
            tokens.push(text, meter);
        });
    }

    /// From here on what has to be known of its tokens is noted: its bytes, those so far, are going
    /// to be out of reach.
    pub(super) fn note_tokens(&mut self, bytes: &[u8], most: usize, meter: &Meter) {
        if matches!(self.tokens.counts, Counts::Nothing) {
            self.tokens = TokenSum::new(Counts::Bytes(most));
            let seen = &bytes[..bytes.len() - self.decoder.begun.len()];
            self.tokens.push(&String::from_utf8_lossy(seen), meter);
        }
    }

    /// The length of its text in bytes, replacement characters included.
    pub(super) fn length(&self) -> u64 {
        self.sketch.bytes()
    }

    pub(super) fn is_utf8(&self) -> bool {
        self.decoder.is_utf8
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.content, Content::Lost)
    }

    /// Its text, if its bytes are at hand.
    pub(super) fn shown(&self) -> Option<Cow<'_, str>> {
        match &self.content {
            // The beginning of a character is not seen before its end.
            Content::Memory(bytes) => Some(String::from_utf8_lossy(
                &bytes[..bytes.len() - self.decoder.begun.len()],
            )),
            Content::Spilled(_) | Content::Lost => None,
        }
    }

    /// The range that it has in what was spilled, if it was.
    pub(super) fn spilled(&self) -> Option<Range<u64>> {
        match self.content {
            Content::Spilled(start) => Some(start..start + self.bytes),
            Content::Memory(_) | Content::Lost => None,
        }
    }

    /// Its bytes as they came, without those of which the first `shown` bytes were shown; none if
    /// they are not at hand.
    pub(super) fn into_rest(self, shown: usize) -> Bytes {
        match self.content {
            Content::Memory(bytes) => {
                let from = skip_shown(&bytes, shown);
                Bytes::from(bytes).slice(from..)
            }
            Content::Spilled(_) | Content::Lost => Bytes::new(),
        }
    }

    /// The part that it was.
    pub(super) fn into_part(self) -> Part {
        let shown = self.shown().unwrap_or_default().into_owned();
        self.json.map_or(Part::Text(shown), Part::Json)
    }

    /// Its tokens, where they are counted as they come: the same however it came. Of a text that is
    /// over the limit alone, not all of them.
    pub(super) fn tokens(&self, meter: &Meter) -> u64 {
        self.tokens.total(meter)
    }

    /// `true` if its tokens are not all counted.
    pub(super) fn has_more_tokens(&self) -> bool {
        self.tokens.is_enough
    }

    /// A lower bound on its tokens; `u64::MAX` for texts of more than `most` bytes, which always
    /// gain.
    pub(super) fn tokens_at_least(&self, most: usize, meter: &Meter) -> u64 {
        let is_uncounted = matches!(self.tokens.counts, Counts::Nothing);
        match self.shown().filter(|_| is_uncounted) {
            Some(text) if text.len() > most => u64::MAX,
            Some(text) => meter.text(&text),
            None => self.tokens.at_least(meter),
        }
    }

    /// The tokens that are counted already.
    pub(super) fn counted(&self) -> u64 {
        self.tokens.sum
    }
}

/// Returns the offset in `bytes` after those that were shown as the first `shown` bytes of text:
/// invalid UTF-8 is shown as replacement characters.
pub(super) fn skip_shown(bytes: &[u8], shown: usize) -> usize {
    let (mut at, mut seen) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        let (valid, invalid) = (chunk.valid().len(), chunk.invalid().len());
        if seen + valid >= shown {
            return at + (shown - seen);
        }
        at += valid + invalid;
        seen += valid;
        if invalid > 0 {
            seen += char::REPLACEMENT_CHARACTER.len_utf8();
        }
    }
    at
}

/// Bytes into text, whatever the chunks: the same as [`String::from_utf8_lossy`] of all of them.
#[derive(Debug)]
struct Decoder {
    /// The beginning of a character.
    begun: Vec<u8>,
    is_utf8: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            begun: Vec::new(),
            is_utf8: true,
        }
    }
}

impl Decoder {
    fn feed(&mut self, bytes: &[u8], see: &mut impl FnMut(&str)) {
        if self.begun.is_empty() {
            return self.decode(bytes, see);
        }
        // As few bytes as the character can take, so that a long chunk is not copied.
        let mut joined = std::mem::take(&mut self.begun);
        let begun = joined.len();
        joined.extend_from_slice(&bytes[..bytes.len().min(MAX_CHAR)]);
        let used = match first_of(&joined) {
            First::Character(character) => {
                see(character);
                character.len()
            }
            First::Invalid(length) => {
                self.is_utf8 = false;
                see(REPLACEMENT);
                length
            }
            // So there were fewer than four.
            First::Begun => {
                self.begun = joined;
                return;
            }
        };
        self.decode(&bytes[used - begun..], see);
    }

    fn decode(&mut self, mut bytes: &[u8], see: &mut impl FnMut(&str)) {
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => {
                    if !text.is_empty() {
                        see(text);
                    }
                    return;
                }
                Err(error) => {
                    let (valid, rest) = bytes.split_at(error.valid_up_to());
                    if let (false, Ok(text)) = (valid.is_empty(), std::str::from_utf8(valid)) {
                        see(text);
                    }
                    let Some(invalid) = error.error_len() else {
                        self.begun = rest.to_vec();
                        return;
                    };
                    self.is_utf8 = false;
                    see(REPLACEMENT);
                    bytes = &rest[invalid..];
                }
            }
        }
    }

    fn end(&mut self, see: &mut impl FnMut(&str)) {
        if !std::mem::take(&mut self.begun).is_empty() {
            self.is_utf8 = false;
            see(REPLACEMENT);
        }
    }
}

const REPLACEMENT: &str = "\u{fffd}";
/// The longest character, in bytes.
const MAX_CHAR: usize = 4;

/// What bytes begin with.
enum First<'b> {
    Character(&'b str),
    /// So many bytes that no character begins with.
    Invalid(usize),
    /// The beginning of a character, and nothing else.
    Begun,
}

fn first_of(bytes: &[u8]) -> First<'_> {
    let (valid, invalid) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => (
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
            error.error_len(),
        ),
    };
    match (valid.chars().next(), invalid) {
        (Some(character), _) => First::Character(&valid[..character.len_utf8()]),
        (None, Some(length)) => First::Invalid(length),
        (None, None) => First::Begun,
    }
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
        (text, decoder.is_utf8)
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
