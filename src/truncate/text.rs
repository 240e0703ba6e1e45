//! One text of a result, as it arrives.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use offcut_preview::Sketch;
use offcut_preview::text::utf8::{Decoder, bytes_shown_as};
use serde_json::Value;

use super::job::Size;
use super::token_sum::{Counts, TokenSum};
use crate::content::Part;
use crate::tokens::Meter;

/// The part of a text that has arrived so far: its known properties, and the place of its bytes.
#[derive(Debug)]
pub(super) struct Text {
    /// The JSON document whose text this is.
    pub(super) json: Option<Value>,
    /// `true` if it arrives in chunks, rather than as one part.
    pub(super) comes_in_chunks: bool,
    /// `true` if it joins several texts, and so can't stay as it is.
    pub(super) is_joined: bool,
    /// Its beginning, end and whatever else a preview may show.
    pub(super) sketch: Sketch,
    pub(super) content: Content,
    /// Number of original bytes. Differs from the number shown if they are not UTF-8.
    pub(super) bytes: u64,
    /// Its size; zero until it has ended.
    pub(super) size: Size,
    decoder: Decoder,
    /// Its tokens, if they matter before it has ended.
    tokens: Option<TokenSum>,
}

/// The place of a text's bytes.
#[derive(Debug)]
pub(super) enum Content {
    Memory(Vec<u8>),
    /// Among the spilled bytes, from this offset on.
    Spilled(u64),
    /// Nowhere: the store failed.
    Lost,
}

impl Text {
    /// An empty text.
    pub(super) fn new(sketch: Sketch, counts: Option<Counts>) -> Self {
        Self {
            json: None,
            comes_in_chunks: false,
            is_joined: false,
            sketch,
            content: Content::Memory(Vec::new()),
            bytes: 0,
            size: Size::default(),
            decoder: Decoder::default(),
            tokens: counts.map(TokenSum::new),
        }
    }

    /// Takes the next bytes into account. The caller puts them where the others are.
    pub(super) fn see(&mut self, bytes: &[u8], meter: &Meter) {
        let Self {
            sketch,
            tokens,
            decoder,
            ..
        } = self;
        decoder.feed(bytes, &mut |text| {
            sketch.push(text);
            if let Some(tokens) = tokens {
                tokens.push(text, meter);
            }
        });
        self.bytes += bytes.len() as u64;
    }

    /// Ends the text.
    pub(super) fn end(&mut self, meter: &Meter) {
        let Self {
            sketch,
            tokens,
            decoder,
            ..
        } = self;
        decoder.end(&mut |text| {
            sketch.push(text);
            if let Some(tokens) = tokens {
                tokens.push(text, meter);
            }
        });
    }

    /// Starts to record the text for counting tokens, as its bytes are about to leave memory.
    /// `bytes` are all bytes so far; texts over `most` bytes are not recorded.
    pub(super) fn note_tokens(&mut self, bytes: &[u8], most: usize, meter: &Meter) {
        if self.tokens.is_none() {
            let mut tokens = TokenSum::new(Counts::Bytes(most));
            let seen = &bytes[..bytes.len() - self.decoder.pending()];
            tokens.push(&String::from_utf8_lossy(seen), meter);
            self.tokens = Some(tokens);
        }
    }

    /// Length of its text in bytes, including replacement characters.
    pub(super) fn length(&self) -> u64 {
        self.sketch.bytes()
    }

    pub(super) fn is_utf8(&self) -> bool {
        self.decoder.is_utf8()
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.content, Content::Lost)
    }

    /// Its text, if its bytes are in memory.
    pub(super) fn shown(&self) -> Option<Cow<'_, str>> {
        match &self.content {
            // The beginning of a character is not counted before its end has come.
            Content::Memory(bytes) => Some(String::from_utf8_lossy(
                &bytes[..bytes.len() - self.decoder.pending()],
            )),
            Content::Spilled(_) | Content::Lost => None,
        }
    }

    /// Its text, if it is in memory or recorded for counting. `None` if its tokens were counted in
    /// pieces: streamed, such a text may have left memory, and both must be decided alike.
    pub(super) fn at_hand(&self) -> Option<Cow<'_, str>> {
        match &self.tokens {
            None => self.shown(),
            Some(tokens) if tokens.is_in_pieces() => None,
            Some(tokens) => self.shown().or_else(|| tokens.noted().map(Cow::Borrowed)),
        }
    }

    /// Its range within the spilled bytes, if it was spilled.
    pub(super) fn spilled(&self) -> Option<Range<u64>> {
        match self.content {
            Content::Spilled(start) => Some(start..start + self.bytes),
            Content::Memory(_) | Content::Lost => None,
        }
    }

    /// Its original bytes, without those that the first `shown` bytes stand for; empty if they are
    /// not in memory.
    pub(super) fn into_rest(self, shown: usize) -> Bytes {
        match self.content {
            Content::Memory(bytes) => {
                let from = bytes_shown_as(&bytes, shown);
                Bytes::from(bytes).slice(from..)
            }
            Content::Spilled(_) | Content::Lost => Bytes::new(),
        }
    }

    /// The part that it arrived as.
    pub(super) fn into_part(self) -> Part {
        let shown = self.shown().unwrap_or_default().into_owned();
        self.json.map_or(Part::Text(shown), Part::Json)
    }

    /// Number of its tokens if they are counted as the text arrives, which does not depend on the
    /// chunks. Incomplete for a text that alone is over the limit.
    pub(super) fn tokens(&self, meter: &Meter) -> u64 {
        self.tokens.as_ref().map_or(0, |tokens| tokens.total(meter))
    }

    /// Returns `true` if not all its tokens are counted.
    pub(super) fn has_more_tokens(&self) -> bool {
        self.tokens
            .as_ref()
            .is_some_and(|tokens| tokens.has_stopped)
    }

    /// A lower bound on its tokens; `u64::MAX` if the text is so long that it always gains.
    pub(super) fn tokens_at_least(&self, meter: &Meter) -> u64 {
        match &self.tokens {
            Some(tokens) => tokens.at_least(meter),
            None => self.shown().map_or(0, |text| meter.count_str(&text)),
        }
    }

    /// Number of tokens counted so far.
    pub(super) fn counted(&self) -> u64 {
        self.tokens.as_ref().map_or(0, |tokens| tokens.sum)
    }
}
