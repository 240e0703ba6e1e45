//! One text of a result, as it comes.

use std::borrow::Cow;

use serde_json::Value;

use crate::content::Part;
use crate::preview::Sketch;
use crate::tokens::Meter;

/// A text of a result, as far as it has come: what is known of it, and where its bytes are.
#[derive(Debug)]
pub(super) struct Text {
    /// The JSON document that it is the text of.
    pub(super) json: Option<Value>,
    /// Whether it comes in chunks, rather than as one part.
    pub(super) comes_in_chunks: bool,
    /// Whether it is several texts, and so can't stay as it is.
    pub(super) is_several: bool,
    /// What can be shown of it.
    pub(super) sketch: Sketch,
    pub(super) content: Content,
    /// Its bytes as they came, which is not what is shown of bytes that are no UTF-8.
    pub(super) bytes: u64,
    decoder: Decoder,
    tokens: TokenSum,
}

/// Where the bytes of a text are.
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
            tokens: TokenSum {
                counts,
                ..TokenSum::default()
            },
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
            self.tokens.counts = Counts::Bytes(most);
            let seen = &bytes[..bytes.len() - self.decoder.begun.len()];
            self.tokens.push(&String::from_utf8_lossy(seen), meter);
        }
    }

    /// How many bytes of text it is.
    pub(super) fn length(&self) -> u64 {
        self.sketch.bytes()
    }

    pub(super) fn is_utf8(&self) -> bool {
        self.decoder.is_utf8
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.content, Content::Lost)
    }

    /// What is shown of it, if its bytes are at hand.
    pub(super) fn shown(&self) -> Option<Cow<'_, str>> {
        match &self.content {
            // The beginning of a character is not seen before its end.
            Content::Memory(bytes) => Some(String::from_utf8_lossy(
                &bytes[..bytes.len() - self.decoder.begun.len()],
            )),
            Content::Spilled(_) | Content::Lost => None,
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

    /// Whether its tokens are not all counted.
    pub(super) fn has_more_tokens(&self) -> bool {
        self.tokens.is_enough
    }

    /// So many tokens it has at least. A text of more than `most` bytes counts as of as many as it
    /// takes.
    pub(super) fn tokens_at_least(&self, most: usize, meter: &Meter) -> u64 {
        match (self.tokens.counts, self.shown()) {
            (Counts::Nothing, Some(text)) if text.len() > most => u64::MAX,
            (Counts::Nothing, Some(text)) => meter.text(&text),
            _ => self.tokens.at_least(meter),
        }
    }

    /// The tokens that are counted already.
    pub(super) fn counted(&self) -> u64 {
        self.tokens.sum
    }
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

/// A text is counted in pieces of so many bytes where it need not be there as a whole.
const PIECE: usize = 32 * 1024;
/// What a cut may cost at most, in tokens, that the whole text does not.
const PER_CUT: u64 = 8;

/// What of a text's tokens has to be known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Counts {
    #[default]
    Nothing,
    /// Those of a text up to so many bytes. A longer one is a gain in any case.
    Bytes(usize),
    /// Those up to so many tokens, as they come. More than that is over the limit in any case.
    Tokens(u64),
}

/// The tokens of a text that comes piece by piece.
#[derive(Clone, Debug, Default)]
struct TokenSum {
    counts: Counts,
    /// What is not counted yet.
    pending: String,
    sum: u64,
    cuts: u64,
    /// Whether there are more than have to be known.
    is_enough: bool,
}

impl TokenSum {
    fn push(&mut self, text: &str, meter: &Meter) {
        match self.counts {
            _ if self.is_enough => {}
            Counts::Nothing => {}
            Counts::Bytes(most) if self.pending.len() + text.len() > most => self.enough(),
            Counts::Bytes(_) => self.pending.push_str(text),
            Counts::Tokens(most) => self.count(text, most, meter),
        }
    }

    fn enough(&mut self) {
        self.is_enough = true;
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
            self.sum = self.sum.saturating_add(meter.once(&self.pending));
            self.pending.clear();
            self.cuts += 1;
            if self.sum.saturating_sub(PER_CUT * self.cuts) > most {
                return self.enough();
            }
            text = rest;
        }
    }

    /// All tokens, in pieces, as far as they have to be known.
    fn total(&self, meter: &Meter) -> u64 {
        match self.cuts {
            _ if self.is_enough => self.sum,
            0 => meter.text(&self.pending),
            _ => self.sum.saturating_add(meter.once(&self.pending)),
        }
    }

    fn at_least(&self, meter: &Meter) -> u64 {
        if self.is_enough {
            u64::MAX
        } else {
            self.total(meter).saturating_sub(PER_CUT * self.cuts)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::tokens::Estimate;

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

        #[test]
        fn tokens_are_the_same_whatever_the_chunks(size in 1usize..50_000, length in 0usize..200_000, most in 0u64..60_000) {
            let meter = Meter::new(Arc::new(Estimate));
            let text = "abcdefg hijk€".repeat(length / 13);
            let sum = |chunk: usize, counts| {
                let mut sum = TokenSum { counts, ..TokenSum::default() };
                let mut rest = text.as_str();
                while !rest.is_empty() {
                    let (piece, tail) = rest.split_at(rest.ceil_char_boundary(chunk.min(rest.len())));
                    sum.push(piece, &meter);
                    rest = tail;
                }
                (sum.total(&meter), sum.at_least(&meter), sum.is_enough)
            };
            for counts in [Counts::Bytes(50_000), Counts::Tokens(most)] {
                let (total, at_least, is_enough) = sum(size, counts);
                prop_assert_eq!((total, at_least, is_enough), sum(usize::MAX, counts));
                prop_assert!(is_enough || at_least <= meter.text(&text));
            }
            let (total, _, is_enough) = sum(size, Counts::Tokens(most));
            prop_assert!(!is_enough || total > most && meter.text(&text) > most);
        }
    }
}
