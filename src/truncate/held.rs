//! The part of a result that has arrived. Decides what can be shown at once, what is held, and what
//! must leave memory. Does no I/O.

mod rest;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::job::{Job, Size};
use super::spill::Source;
use super::text::{Content, Text};
use super::token_sum::Counts;
use crate::config::SizeLimit;
use crate::content::{Chunk, Part};
use crate::hint::Placement;

/// Once a result over its limit has this many parts, later texts are joined, each after a line
/// feed. Otherwise the state of all texts would grow without bound.
const MAX_SLOTS: usize = 256;

/// The part of a result that has arrived so far.
#[derive(Debug)]
pub(super) struct Held {
    job: Arc<Job>,
    slots: Vec<Slot>,
    /// `true` while the last text may continue.
    is_open: bool,
    /// `true` if the last chunk was bytes of the last text.
    is_in_chunks: bool,
    /// Size of the texts that have ended.
    ended: Size,
    /// Texts may leave memory once the result is over the limit and has more bytes than this;
    /// `None` means never.
    spill_above: Option<u64>,
    /// Number of bytes spilled.
    spilled: u64,
    /// Side of the preview that hints are placed on. With `Last`, the first text is shown as it
    /// arrives.
    placement: Placement,
    /// Number of slots already shown whole, and number of bytes already shown of the text in the
    /// next slot.
    shown: (usize, usize),
    /// Size of the slots already shown whole.
    passed: Size,
}

/// A part of a result.
#[derive(Debug)]
enum Slot {
    /// A text that counts towards the limit.
    Text(Box<Text>),
    /// A part that passes through unchanged.
    Part(Part),
    /// An empty slot: its part was already shown, or the hint in another slot stands for it.
    Shown,
}

impl Held {
    pub(super) fn new(job: Arc<Job>, placement: Placement, spill_above: Option<u64>) -> Self {
        Self {
            job,
            slots: Vec::new(),
            is_open: false,
            is_in_chunks: false,
            ended: Size::default(),
            spill_above,
            spilled: 0,
            placement,
            shown: (0, 0),
            passed: Size::default(),
        }
    }

    /// Takes the next chunk. Returns the chunks to show now, and the bytes to append to the spilled
    /// ones.
    pub(super) fn push(&mut self, chunk: Chunk) -> (Vec<Chunk>, Option<Bytes>) {
        let spill = match chunk {
            Chunk::Bytes(bytes) if bytes.is_empty() => None,
            Chunk::Bytes(bytes) => {
                let goes_on = std::mem::replace(&mut self.is_in_chunks, true) && self.is_open;
                if !goes_on && self.is_full() {
                    self.join(&bytes)
                } else {
                    if !goes_on {
                        self.begin(None, true);
                    }
                    self.go_on(bytes)
                }
            }
            Chunk::Part(part) => {
                self.is_in_chunks = false;
                self.part(part)
            }
        };
        (self.show(), spill)
    }

    fn part(&mut self, part: Part) -> Option<Bytes> {
        let (text, json) = match part {
            Part::Text(text) if self.is_full() => return self.join(text.as_bytes()),
            Part::Text(text) => (text, None),
            Part::Json(value) => {
                let text = value.to_string();
                // JSON is measured by itself. Over the limit it is treated as text; within the
                // limit it passes through.
                if !self.job.is_over_limit(self.job.size_of(&text)) {
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
        let counts = match self.job.policy.max_length_for_trunc {
            SizeLimit::Bytes(_) => None,
            SizeLimit::Tokens { tokens } => Some(Counts::Tokens(tokens)),
        };
        let mut text = Text::new(self.job.sketch(), counts);
        (text.json, text.comes_in_chunks) = (json, comes_in_chunks);
        self.slots.push(Slot::Text(Box::new(text)));
        self.is_open = true;
    }

    /// Ends the last text.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_open)
            && let Some(Slot::Text(text)) = self.slots.last_mut()
        {
            let meter = self.job.session.meter();
            text.end(meter);
            text.size = self.job.sized(text.length(), || text.tokens(meter));
            self.ended = self.ended.plus(text.size);
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
        let meter = self.job.session.meter();
        let Some(Slot::Text(text)) = self.slots.last_mut() else {
            return None;
        };
        text.see(&bytes, meter);
        let so_far = self.ended.plus(Size {
            bytes: text.length(),
            tokens: text.counted(),
        });
        let held = match &mut text.content {
            Content::Spilled(_) => {
                self.spilled += bytes.len() as u64;
                return Some(bytes);
            }
            Content::Lost => return None,
            Content::Memory(held) => held,
        };
        let spills = self.spill_above.is_some_and(|above| so_far.bytes > above)
            && self.job.is_over_limit(so_far);
        let bytes = if spills && held.is_empty() {
            bytes
        } else {
            // Avoid a copy if nothing is held yet.
            if held.is_empty() {
                *held = bytes.into();
            } else {
                held.extend_from_slice(&bytes);
            }
            if !spills {
                return None;
            }
            std::mem::take(held).into()
        };
        text.note_tokens(&bytes, self.job.sure_gain(), meter);
        text.content = Content::Spilled(self.spilled);
        self.spilled += bytes.len() as u64;
        Some(bytes)
    }

    /// Returns what is certain to be shown: the parts before the first text, and the head of that
    /// text.
    fn show(&mut self) -> Vec<Chunk> {
        let mut show = Vec::new();
        let Some(head) = self.job.settled_head() else {
            return show;
        };
        if self.placement == Placement::First {
            return show;
        }
        while let Some(slot) = self.slots.get_mut(self.shown.0) {
            if let Slot::Text(text) = slot {
                let head = text.sketch.settled(head);
                let more = head
                    .get(self.shown.1..)
                    .filter(|more| text.comes_in_chunks && !more.is_empty());
                if let Some(more) = more {
                    show.push(Chunk::Bytes(Bytes::copy_from_slice(more.as_bytes())));
                    self.shown.1 = head.len();
                }
                break;
            }
            if let Slot::Part(part) = std::mem::replace(slot, Slot::Shown) {
                self.passed = self.passed.plus(self.job.size_of_part(&part));
                show.push(Chunk::Part(part));
            }
            self.shown.0 += 1;
        }
        show
    }
}

/// Queries.
impl Held {
    pub(super) fn placement(&self) -> Placement {
        self.placement
    }

    pub(super) fn has_several_slots(&self) -> bool {
        self.slots.len() > 1
    }

    /// The texts that count towards the limit, with their slots.
    pub(super) fn texts(&self) -> impl Iterator<Item = (usize, &Text)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, part)| match part {
                Slot::Text(text) => Some((slot, &**text)),
                Slot::Part(_) | Slot::Shown => None,
            })
    }

    fn text(&self, slot: usize) -> Option<&Text> {
        match &self.slots[slot] {
            Slot::Text(text) => Some(text),
            Slot::Part(_) | Slot::Shown => None,
        }
    }

    /// The text, if the result is only that text, and the number of its bytes already shown.
    pub(super) fn only_text(&self) -> Option<(&Text, usize)> {
        match self.slots.as_slice() {
            [Slot::Text(text)] if text.json.is_none() => Some((text, self.shown.1)),
            _ => None,
        }
    }

    /// The slot of the last text, if it arrives in chunks and could have continued.
    pub(super) fn last_in_chunks(&self) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        self.text(last)?.comes_in_chunks.then_some(last)
    }

    /// Returns `true` if the texts that have ended are together over the limit.
    pub(super) fn is_over_limit(&self) -> bool {
        self.job.is_over_limit(self.ended)
    }

    /// The original size of the whole result; `true` if all its tokens are counted.
    pub(super) fn size(&self) -> (Size, bool) {
        let (mut size, mut is_counted) = (self.passed, true);
        for slot in &self.slots {
            size = size.plus(match slot {
                Slot::Text(text) => {
                    is_counted &= !text.has_more_tokens();
                    Size {
                        bytes: text.bytes,
                        ..text.size
                    }
                }
                Slot::Part(part) => self.job.size_of_part(part),
                Slot::Shown => Size::default(),
            });
        }
        (size, is_counted)
    }

    /// The range of a text within the spilled bytes.
    pub(super) fn spilled(&self, slot: usize) -> Option<Range<u64>> {
        self.text(slot)?.spilled()
    }

    /// Slots of spilled texts that can be shown whole after all, because they are among the
    /// shortest texts, which together fit the limit.
    pub(super) fn wanted_back(&self) -> Vec<usize> {
        let mut texts: Vec<_> = self.texts().map(|(slot, text)| (slot, text.size)).collect();
        texts.sort_by_key(|(slot, size)| (size.bytes, *slot));
        let mut sum = Size::default();
        let within = texts.into_iter().take_while(|(_, size)| {
            sum = sum.plus(*size);
            !self.job.is_over_limit(sum)
        });
        within
            .map(|(slot, _)| slot)
            .filter(|slot| self.spilled(*slot).is_some())
            .collect()
    }

    /// Returns `true` if all texts of `slots` are in memory.
    pub(super) fn is_in_memory(&self, slots: &[usize]) -> bool {
        let is_in_memory = |text: &Text| matches!(text.content, Content::Memory(_));
        slots
            .iter()
            .all(|slot| self.text(*slot).is_some_and(is_in_memory))
    }

    /// The bytes to store for the texts of `slots`: a single source if all of them are in memory.
    /// If there is a manifest, each text is followed by a line feed, and it comes last. `None` if
    /// one of the texts is lost.
    pub(super) fn sources(&self, slots: &[usize], manifest: Option<&str>) -> Option<Vec<Source>> {
        let mut sources = Vec::new();
        let append = |sources: &mut Vec<Source>, bytes: &[u8]| match sources.last_mut() {
            Some(Source::Bytes(all)) => all.extend_from_slice(bytes),
            _ => sources.push(Source::Bytes(bytes.to_vec())),
        };
        for slot in slots {
            let text = self.text(*slot)?;
            match &text.content {
                Content::Memory(held) => append(&mut sources, held),
                Content::Spilled(_) => sources.push(Source::Spilled(text.spilled()?)),
                Content::Lost => return None,
            }
            if manifest.is_some() {
                append(&mut sources, b"\n");
            }
        }
        if let Some(manifest) = manifest {
            append(&mut sources, manifest.as_bytes());
        }
        Some(sources)
    }
}
