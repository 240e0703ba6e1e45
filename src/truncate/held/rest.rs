//! The end of a held result: takes texts back, replaces them, and shows the rest.

use std::ops::Range;

use super::{Held, Slot};
use crate::content::Part;
use crate::truncate::text::Content;

impl Held {
    /// Takes a spilled text back into memory; without its bytes it is lost.
    pub(in crate::truncate) fn take_back(&mut self, slot: usize, bytes: Option<Vec<u8>>) {
        if let Slot::Text(text) = &mut self.slots[slot] {
            text.content = bytes.map_or(Content::Lost, Content::Memory);
        }
    }

    /// Takes back everything that was spilled, which is `bytes`, and spills nothing any more. Without
    /// them it is lost, and later texts are spilled again, since the store may have recovered.
    pub(in crate::truncate) fn take_back_all(&mut self, bytes: Option<&[u8]>) {
        self.spilled = 0;
        self.spill_above = self.spill_above.filter(|_| bytes.is_none());
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
            self.slots[*slot] = Slot::Replaced;
        }
        if let Some(first) = slots.first() {
            self.slots[*first] = Slot::Part(Part::Text(hint));
        }
    }

    /// Replaces the whole result by `parts`.
    pub(in crate::truncate) fn replace_all(&mut self, parts: Vec<Part>) {
        self.slots = parts.into_iter().map(Slot::Part).collect();
    }

    /// Returns the parts to show.
    pub(in crate::truncate) fn show(self) -> Vec<Part> {
        let shown = |slot| match slot {
            Slot::Text(text) => Some(text.into_part()),
            Slot::Part(part) => Some(part),
            Slot::Replaced => None,
        };
        self.slots.into_iter().filter_map(shown).collect()
    }
}
