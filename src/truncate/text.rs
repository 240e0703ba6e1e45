//! One text of a result, as it arrives.

use std::borrow::Cow;
use std::ops::Range;

use crate::preview::Sketch;
use crate::preview::text::utf8::{Decoder, text_of};
use serde_json::Value;

use crate::content::Part;

/// The part of a text that has arrived so far: its known properties, and the place of its bytes.
#[derive(Debug)]
pub(super) struct ArrivingText {
    /// Its place among the parts of the result.
    pub(super) slot: usize,
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
    decoder: Decoder,
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

impl ArrivingText {
    /// An empty text.
    pub(super) fn new(slot: usize, sketch: Sketch) -> Self {
        Self {
            slot,
            json: None,
            comes_in_chunks: false,
            is_joined: false,
            sketch,
            content: Content::Memory(Vec::new()),
            bytes: 0,
            decoder: Decoder::default(),
        }
    }

    /// Takes the next bytes into account. The caller puts them where the others are.
    pub(super) fn see(&mut self, bytes: &[u8]) {
        let sketch = &mut self.sketch;
        self.decoder.feed(bytes, &mut |text| sketch.push(text));
        self.bytes += bytes.len() as u64;
    }

    /// Ends the text.
    pub(super) fn end(&mut self) {
        let sketch = &mut self.sketch;
        self.decoder.end(&mut |text| sketch.push(text));
        sketch.end();
    }

    /// Length of its text in bytes, including replacement characters.
    pub(super) fn length(&self) -> u64 {
        self.sketch.bytes()
    }

    pub(super) fn is_utf8(&self) -> bool {
        self.decoder.is_utf8()
    }

    /// Returns `true` if it can't stay as it is, however short the other texts are.
    pub(super) fn must_be_stored(&self) -> bool {
        !self.is_utf8() || self.json.is_some() || self.is_joined
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.content, Content::Lost)
    }

    /// Its text, if its bytes are in memory.
    pub(super) fn shown(&self) -> Option<Cow<'_, str>> {
        match &self.content {
            Content::Memory(bytes) => Some(text_of(bytes)),
            Content::Spilled(_) | Content::Lost => None,
        }
    }

    /// Its range within the spilled bytes, if it was spilled.
    pub(super) fn spilled(&self) -> Option<Range<u64>> {
        match self.content {
            Content::Spilled(start) => Some(start..start + self.bytes),
            Content::Memory(_) | Content::Lost => None,
        }
    }

    /// The part that it arrived as.
    pub(super) fn into_part(self) -> Part {
        let shown = self.shown().unwrap_or_default().into_owned();
        self.json.map_or(Part::Text(shown), Part::Json)
    }
}
