//! The part of a result that has arrived. Decides what is held, and what must leave memory. Does no
//! I/O.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use super::job::{Job, MAX_TAKEN_BACK};
use crate::content::{Chunk, Part};
use crate::preview::Sketch;
use crate::preview::text::utf8::{Decoder, text_of};

/// Once a result over its limit has this many parts, later texts are joined, each after a line
/// feed. Otherwise the state of all texts would grow without bound.
const MAX_SLOTS: usize = 256;

/// The part of a result that has arrived so far.
#[derive(Debug)]
pub(super) struct Held<'a> {
    job: Job<'a>,
    slots: Vec<Slot>,
    /// `true` while the last text may continue.
    is_open: bool,
    /// `true` if the last chunk was bytes of the last text.
    is_in_chunks: bool,
    /// Number of bytes of the texts that have ended.
    ended: u64,
    /// Texts may leave memory once the result is over the limit and has more bytes than this;
    /// `None` means never.
    spill_above: Option<u64>,
    /// Number of bytes spilled.
    spilled: u64,
}

/// A part of a result.
#[derive(Debug)]
enum Slot {
    /// A text that counts towards the limit.
    Text(Box<ArrivingText>),
    /// A part that passes through unchanged.
    Part(Part),
    /// An empty slot: the hint in another slot stands for it.
    Replaced,
}

impl<'a> Held<'a> {
    pub(super) fn new(job: Job<'a>, spill_above: Option<u64>) -> Self {
        Self {
            job,
            slots: Vec::new(),
            is_open: false,
            is_in_chunks: false,
            ended: 0,
            spill_above,
            spilled: 0,
        }
    }

    /// Takes the next chunk. Returns the bytes to append to the spilled ones.
    pub(super) fn push(&mut self, chunk: Chunk) -> Option<Bytes> {
        match chunk {
            Chunk::Bytes(bytes) if bytes.is_empty() => None,
            Chunk::Bytes(bytes) => {
                let goes_on = std::mem::replace(&mut self.is_in_chunks, true) && self.is_open;
                if !goes_on && self.is_full() {
                    return self.join(&bytes);
                }
                if !goes_on {
                    self.begin(None, true);
                }
                self.go_on(bytes)
            }
            Chunk::Part(part) => {
                self.is_in_chunks = false;
                self.part(part)
            }
        }
    }

    fn part(&mut self, part: Part) -> Option<Bytes> {
        let (text, json) = match part {
            Part::Text(text) if self.is_full() => return self.join(text.as_bytes()),
            Part::Text(text) => (text, None),
            Part::Json(value) => {
                let text = value.to_string();
                // JSON is measured by itself. Over the limit it is treated as text; within the
                // limit it passes through.
                if !self.job.is_over_limit(text.len() as u64) {
                    return self.pass(Part::Json(value));
                }
                (text, Some(value))
            }
            Part::Media { .. } | Part::Link { .. } | Part::Opaque(_) => return self.pass(part),
        };
        self.begin(json, false);
        let spill = self.go_on(text.into());
        self.end();
        spill
    }

    fn pass(&mut self, part: Part) -> Option<Bytes> {
        self.end();
        self.slots.push(Slot::Part(part));
        None
    }

    fn begin(&mut self, json: Option<Value>, comes_in_chunks: bool) {
        self.end();
        self.slots.push(Slot::Text(Box::new(ArrivingText {
            slot: self.slots.len(),
            json,
            comes_in_chunks,
            is_joined: false,
            sketch: self.job.sketch(),
            content: Some(Piece::Memory(Vec::new())),
            bytes: 0,
            decoder: Decoder::default(),
        })));
        self.is_open = true;
    }

    /// Ends the last text.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_open)
            && let Some(Slot::Text(text)) = self.slots.last_mut()
        {
            text.end();
            self.ended += text.length();
        }
    }

    /// Returns `true` if further texts must be joined. Ends the last text to find out, unless it is
    /// the joined text.
    fn is_full(&mut self) -> bool {
        if self.slots.len() < MAX_SLOTS {
            return false;
        }
        if !matches!(self.slots.last(), Some(Slot::Text(text)) if text.is_joined) {
            self.end();
        }
        self.is_over_limit()
    }

    /// Appends `text` to the joined text.
    fn join(&mut self, text: &[u8]) -> Option<Bytes> {
        if self.is_open {
            return self.go_on([b"\n", text].concat().into());
        }
        // `true` because the joined text may contain chunks, which can end inside a character.
        self.begin(None, true);
        if let Some(Slot::Text(joined)) = self.slots.last_mut() {
            joined.is_joined = true;
        }
        self.go_on(Bytes::copy_from_slice(text))
    }

    fn go_on(&mut self, bytes: Bytes) -> Option<Bytes> {
        let Some(Slot::Text(text)) = self.slots.last_mut() else {
            return None;
        };
        text.see(&bytes);
        let so_far = self.ended + text.length();
        let spills =
            self.spill_above.is_some_and(|above| so_far > above) && self.job.is_over_limit(so_far);
        let bytes = match text.content.as_mut()? {
            Piece::Spilled(_) => bytes,
            Piece::Memory(held) => {
                // Avoid a copy if nothing is held yet.
                if held.is_empty() {
                    *held = bytes.into();
                } else {
                    held.extend_from_slice(&bytes);
                }
                if !spills {
                    return None;
                }
                let bytes = std::mem::take(held).into();
                text.content = Some(Piece::Spilled(self.spilled..self.spilled));
                bytes
            }
        };
        self.spilled += bytes.len() as u64;
        if let Some(Piece::Spilled(range)) = &mut text.content {
            range.end = self.spilled;
        }
        Some(bytes)
    }
}

/// Queries.
impl Held<'_> {
    pub(super) fn has_several_slots(&self) -> bool {
        self.slots.len() > 1
    }

    /// The texts that count towards the limit.
    pub(super) fn texts(&self) -> impl Iterator<Item = &ArrivingText> {
        self.slots.iter().filter_map(|part| match part {
            Slot::Text(text) => Some(&**text),
            Slot::Part(_) | Slot::Replaced => None,
        })
    }

    /// The text, if the result is only that text.
    pub(super) fn only_text(&self) -> Option<&ArrivingText> {
        match self.slots.as_slice() {
            [Slot::Text(text)] if text.json.is_none() => Some(text),
            _ => None,
        }
    }

    /// The slot of the last text, if it arrives in chunks and could have continued.
    pub(super) fn last_in_chunks(&self) -> Option<usize> {
        match self.slots.last()? {
            Slot::Text(text) if text.comes_in_chunks => Some(text.slot),
            _ => None,
        }
    }

    /// Length of all texts so far in bytes.
    pub(super) fn length(&self) -> u64 {
        let open = self.texts().last().filter(|_| self.is_open);
        self.ended + open.map_or(0, ArrivingText::length)
    }

    /// Returns `true` if the texts that have ended are together over the limit.
    pub(super) fn is_over_limit(&self) -> bool {
        self.job.is_over_limit(self.ended)
    }

    /// The original size of the whole result in bytes.
    pub(super) fn size(&self) -> u64 {
        let size = |slot: &Slot| match slot {
            Slot::Text(text) => text.bytes,
            Slot::Part(part) => text_bytes(part),
            Slot::Replaced => 0,
        };
        self.slots.iter().map(size).sum()
    }

    /// The range of a text within the spilled bytes.
    pub(super) fn spilled(&self, slot: usize) -> Option<Range<u64>> {
        match &self.slots[slot] {
            Slot::Text(text) => text.spilled(),
            Slot::Part(_) | Slot::Replaced => None,
        }
    }

    /// Slots of spilled texts that can be shown whole after all, because they are among the
    /// shortest texts, which together fit the limit.
    pub(super) fn wanted_back(&self) -> Vec<usize> {
        let mut texts: Vec<_> = self.texts().collect();
        texts.sort_unstable_by_key(|text| (text.length(), text.slot));
        let mut sum = 0;
        let within = texts.into_iter().take_while(|text| {
            sum += text.length();
            !self.job.is_over_limit(sum)
        });
        let spilled = within.filter(|text| text.spilled().is_some());
        spilled.map(|text| text.slot).collect()
    }

    /// The pieces to store for the texts of `slots`, which ascend: a single one if all of them are in memory. If
    /// there is a manifest, each text is followed by a line feed, and it comes last. `None` if one of
    /// the texts is lost.
    pub(super) fn pieces(&self, slots: &[usize], manifest: Option<&str>) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut append = |piece: Piece| match (pieces.last_mut(), piece) {
            (Some(Piece::Memory(all)), Piece::Memory(more)) => all.extend(more),
            (_, piece) => pieces.push(piece),
        };
        debug_assert!(slots.is_sorted());
        let is_meant = |text: &&ArrivingText| slots.binary_search(&text.slot).is_ok();
        for text in self.texts().filter(is_meant) {
            append(text.content.clone()?);
            if manifest.is_some() {
                append(Piece::Memory(b"\n".to_vec()));
            }
        }
        if let Some(manifest) = manifest {
            append(Piece::Memory(manifest.into()));
        }
        Some(pieces)
    }
}

/// The end: texts are taken back or replaced, and the rest is shown.
impl Held<'_> {
    /// Takes a spilled text back into memory; without its bytes it is lost.
    pub(super) fn take_back(&mut self, slot: usize, bytes: Option<Vec<u8>>) {
        if let Slot::Text(text) = &mut self.slots[slot] {
            text.content = bytes.map(Piece::Memory);
        }
    }

    /// Takes back everything that was spilled, which is `bytes`, and spills again only if it becomes more
    /// than [`MAX_TAKEN_BACK`]. Without them it is lost, and later texts are spilled again, since the store may
    /// have recovered.
    pub(super) fn take_back_all(&mut self, bytes: Option<&[u8]>) {
        self.spilled = 0;
        if bytes.is_some() {
            let least = |above: u64| above.max(MAX_TAKEN_BACK);
            self.spill_above = self.spill_above.map(least);
        }
        for slot in 0..self.slots.len() {
            if let Some(Range { start, end }) = self.spilled(slot) {
                // Both are within the spilled bytes, so they fit a usize.
                let bytes = bytes.map(|bytes| bytes[start as usize..end as usize].to_vec());
                self.take_back(slot, bytes);
            }
        }
    }

    /// Replaces the first of `slots` by a hint. The others leave the result.
    pub(super) fn replace(&mut self, slots: &[usize], hint: String) {
        for slot in slots {
            self.slots[*slot] = Slot::Replaced;
        }
        if let Some(first) = slots.first() {
            self.slots[*first] = Slot::Part(Part::Text(hint));
        }
    }

    /// Replaces the whole result by `parts`.
    pub(super) fn replace_all(&mut self, parts: Vec<Part>) {
        self.slots = parts.into_iter().map(Slot::Part).collect();
    }

    /// Returns the parts to show.
    pub(super) fn into_parts(self) -> Vec<Part> {
        let shown = |slot| match slot {
            Slot::Text(text) => Some(text.into_part()),
            Slot::Part(part) => Some(part),
            Slot::Replaced => None,
        };
        self.slots.into_iter().filter_map(shown).collect()
    }
}

/// The part of a text that has arrived so far: its known properties, and the place of its bytes.
#[derive(Debug)]
pub(super) struct ArrivingText {
    /// Its place among the parts of the result.
    pub(super) slot: usize,
    /// The JSON document whose text this is.
    pub(super) json: Option<Value>,
    /// `true` if it arrives in chunks, rather than as one part.
    comes_in_chunks: bool,
    /// `true` if it joins several texts, and so can't stay as it is.
    is_joined: bool,
    /// Its beginning, end and whatever else a preview may show.
    pub(super) sketch: Sketch,
    /// `None` if it is lost, because the store failed.
    pub(super) content: Option<Piece>,
    /// Number of original bytes. Differs from the number shown if they are not UTF-8.
    pub(super) bytes: u64,
    decoder: Decoder,
}

/// Content, or a piece of it.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Memory(Vec<u8>),
    /// A range of the spilled bytes.
    Spilled(Range<u64>),
}

impl ArrivingText {
    /// Takes the next bytes into account. The caller puts them where the others are.
    fn see(&mut self, bytes: &[u8]) {
        let sketch = &mut self.sketch;
        self.decoder.feed(bytes, &mut |text| sketch.push(text));
        self.bytes += bytes.len() as u64;
    }

    /// Ends the text.
    fn end(&mut self) {
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

    /// Its text, if its bytes are in memory.
    pub(super) fn shown(&self) -> Option<Cow<'_, str>> {
        match self.content.as_ref()? {
            Piece::Memory(bytes) => Some(text_of(bytes)),
            Piece::Spilled(_) => None,
        }
    }

    /// Its range within the spilled bytes, if it was spilled.
    pub(super) fn spilled(&self) -> Option<Range<u64>> {
        match self.content.as_ref()? {
            Piece::Spilled(range) => Some(range.clone()),
            Piece::Memory(_) => None,
        }
    }

    /// The part that it arrived as.
    fn into_part(self) -> Part {
        let shown = self.shown().unwrap_or_default().into_owned();
        self.json.map_or(Part::Text(shown), Part::Json)
    }
}

/// Number of content bytes that a limit on text applies to.
pub(super) fn text_bytes(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.len() as u64,
        Part::Json(value) => value.to_string().len() as u64,
        Part::Media { .. } | Part::Link { .. } | Part::Opaque(_) => 0,
    }
}
