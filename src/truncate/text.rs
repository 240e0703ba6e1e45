//! One text of a result, as it comes.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use super::token_sum::{Counts, TokenSum};
use crate::content::Part;
use crate::preview::Sketch;
use crate::text::utf8::{Decoder, bytes_shown_as};
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
            let seen = &bytes[..bytes.len() - self.decoder.pending()];
            self.tokens.push(&String::from_utf8_lossy(seen), meter);
        }
    }

    /// The length of its text in bytes, replacement characters included.
    pub(super) fn length(&self) -> u64 {
        self.sketch.bytes()
    }

    pub(super) fn is_utf8(&self) -> bool {
        self.decoder.is_utf8()
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.content, Content::Lost)
    }

    /// Its text, if its bytes are at hand.
    pub(super) fn shown(&self) -> Option<Cow<'_, str>> {
        match &self.content {
            // The beginning of a character is not seen before its end.
            Content::Memory(bytes) => Some(String::from_utf8_lossy(
                &bytes[..bytes.len() - self.decoder.pending()],
            )),
            Content::Spilled(_) | Content::Lost => None,
        }
    }

    /// Its text, if that is at hand or noted to be counted.
    pub(super) fn at_hand(&self) -> Option<Cow<'_, str>> {
        let noted = || self.tokens.noted().map(Cow::Borrowed);
        self.shown().or_else(noted)
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
                let from = bytes_shown_as(&bytes, shown);
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

    /// A lower bound on its tokens; `u64::MAX` where so many have come that it always gains.
    pub(super) fn tokens_at_least(&self, meter: &Meter) -> u64 {
        let is_uncounted = matches!(self.tokens.counts, Counts::Nothing);
        match self.shown().filter(|_| is_uncounted) {
            Some(text) => meter.text(&text),
            None => self.tokens.at_least(meter),
        }
    }

    /// The tokens that are counted already.
    pub(super) fn counted(&self) -> u64 {
        self.tokens.sum
    }
}
