//! The end of a held result: takes texts back, replaces them, and shows the rest.

use std::ops::Range;

use bytes::Bytes;

use super::{Held, Slot};
use crate::content::{Chunk, Part};
use crate::truncate::job::{Size, text_bytes};
use crate::truncate::text::Content;

impl Held {
    /// Takes a spilled text back into memory; without its bytes it is lost.
    pub(in crate::truncate) fn take_back(&mut self, slot: usize, bytes: Option<Vec<u8>>) {
        if let Slot::Text(text) = &mut self.slots[slot] {
            text.content = bytes.map_or(Content::Lost, Content::Memory);
        }
    }

    /// Takes back everything that was spilled, which is `bytes`; without them it is lost. Later
    /// texts are spilled again, since the store may have recovered.
    pub(in crate::truncate) fn take_back_all(&mut self, bytes: Option<&[u8]>) {
        self.spilled = 0;
        for slot in 0..self.slots.len() {
            if let Some(Range { start, end }) = self.spilled(slot) {
                // Both are within the spilled bytes, so they fit a usize.
                let bytes = bytes.map(|bytes| bytes[start as usize..end as usize].to_vec());
                self.take_back(slot, bytes);
            }
        }
    }

    /// Replaces the first of `slots` by a hint. The others leave the result.
    pub(in crate::truncate) fn replace(&mut self, slots: &[usize], hint: String) {
        for slot in slots {
            self.slots[*slot] = Slot::Shown;
        }
        if let Some(first) = slots.first() {
            self.slots[*first] = Slot::Part(Part::Text(hint));
        }
    }

    /// Replaces the whole result by `parts`.
    pub(in crate::truncate) fn replace_all(&mut self, parts: Vec<Part>) {
        self.slots = parts.into_iter().map(Slot::Part).collect();
    }

    /// Returns the chunks that are left to show, and the final size of everything shown. If the
    /// last text continues unchanged, tokens are not counted, since it may be of any length.
    pub(in crate::truncate) fn show_rest(&mut self, goes_on: bool) -> (Vec<Chunk>, Size) {
        let (mut chunks, mut size) = (Vec::new(), self.passed);
        for (index, slot) in std::mem::take(&mut self.slots).into_iter().enumerate() {
            let shown = if index == self.shown.0 {
                self.shown.1
            } else {
                0
            };
            let part = match slot {
                // Taken back after the store failed: it is passed on unchanged.
                Slot::Text(text) if text.comes_in_chunks && (goes_on || !text.is_utf8()) => {
                    let length = text.shown().map_or(text.bytes, |text| text.len() as u64);
                    let tokens = if goes_on { 0 } else { text.size.tokens };
                    let rest = text.into_rest(shown);
                    size = size.plus(Size {
                        // The size as finally shown.
                        bytes: length.max((shown + rest.len()) as u64),
                        tokens,
                    });
                    chunks.extend((!rest.is_empty()).then_some(Chunk::Bytes(rest)));
                    continue;
                }
                Slot::Text(text) => text.into_part(),
                Slot::Part(part) => part,
                Slot::Shown => continue,
            };
            size = size.plus(if goes_on {
                Size {
                    bytes: text_bytes(&part),
                    tokens: 0,
                }
            } else {
                self.job.size_of_part(&part)
            });
            match part {
                Part::Text(text) if shown == text.len() && shown > 0 => {}
                Part::Text(text) if shown > 0 => {
                    chunks.push(Chunk::Bytes(Bytes::from(text).slice(shown..)));
                }
                part => chunks.push(Chunk::Part(part)),
            }
        }
        (chunks, size)
    }
}
