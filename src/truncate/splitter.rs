//! Decides about a result as it comes: what can be shown at once, what is held, and what has to
//! leave memory. Without I/O.

use bytes::Bytes;
use serde_json::Value;

use super::text::{Content, Counts, Text};
use crate::config::{Limit, Policy};
use crate::content::{Chunk, Part};
use crate::hint::Placement;
use crate::preview::longest_marks;
use crate::session::Session;

/// No encoding has longer tokens, in bytes. A limit in tokens must not need a whole text to be held
/// to be counted.
const MAX_TOKEN: u64 = 256;

/// Once a result over its limit has so many parts, the texts that follow are one, each behind a
/// line feed: what is kept of each text would be without bound.
const MAX_SLOTS: usize = 256;

/// A result as far as it has come.
#[derive(Debug)]
pub(super) struct Splitter {
    session: Session,
    policy: Policy,
    pub(super) slots: Vec<Slot>,
    /// Whether the last text may go on.
    is_open: bool,
    /// Whether what came last were bytes of it.
    is_in_chunks: bool,
    /// The texts that have ended.
    ended: Size,
    /// Texts may leave memory once the result is over the limit and has more bytes than this;
    /// `None` for never.
    spill_above: Option<u64>,
    /// How many bytes were spilled.
    spilled: u64,
    /// Whether hints come behind their previews, and the first text is shown as it comes.
    pub(super) placement: Placement,
    /// How many slots were shown as a whole, and how many bytes of the text behind them.
    pub(super) shown: (usize, usize),
    /// How much those slots were.
    pub(super) passed: Size,
}

/// A part of a result.
#[derive(Debug)]
pub(super) enum Slot {
    /// A text that counts.
    Text(Text),
    /// What passes through, in its place.
    Part(Part),
    /// What has passed.
    Shown,
}

/// How much text it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) tokens: u64,
}

impl Size {
    pub(super) fn is_over(self, limit: Limit) -> bool {
        match limit {
            Limit::Bytes(bytes) => self.bytes > bytes as u64,
            Limit::Tokens { tokens } => {
                self.tokens > tokens || self.bytes > tokens.saturating_mul(MAX_TOKEN)
            }
        }
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            tokens: self.tokens.max(other.tokens),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let (bytes, tokens) = (
            self.bytes.saturating_add(other.bytes),
            self.tokens.saturating_add(other.tokens),
        );
        Self { bytes, tokens }
    }
}

/// A text of more bytes than this is longer than any hint for it, in tokens too: head and tail are
/// of the text, and what is left out of 32 KiB costs more than the rest of a hint.
pub(super) fn sure_gain(limit: Limit) -> usize {
    limit.safe_bytes().saturating_add(32 * 1024)
}

/// How much a text is: tokens only where the limit is about them.
pub(super) fn size(session: &Session, limit: Limit, text: &Text) -> Size {
    let tokens = if matches!(limit, Limit::Tokens { .. }) {
        text.tokens(session.meter())
    } else {
        0
    };
    Size {
        bytes: text.length(),
        tokens,
    }
}

/// The same for a text that is there as a whole, and counted as one.
pub(super) fn size_of_text(session: &Session, limit: Limit, text: &str) -> Size {
    let counts = matches!(limit, Limit::Tokens { .. });
    Size {
        bytes: text.len() as u64,
        tokens: if counts {
            session.meter().text(text)
        } else {
            0
        },
    }
}

/// How much a part is that passes.
pub(super) fn part_size(session: &Session, limit: Limit, part: &Part) -> Size {
    let counts = matches!(limit, Limit::Tokens { .. });
    Size {
        bytes: text_bytes(part),
        tokens: if counts {
            session.meter().part(part.into())
        } else {
            0
        },
    }
}

/// The bytes of content that a text limit is about.
pub(super) fn text_bytes(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text.len() as u64,
        Part::Json(value) => value.to_string().len() as u64,
        Part::Media { .. } | Part::Link { .. } | Part::Opaque(_) => 0,
    }
}

/// What is to be done once a chunk has come.
#[derive(Debug)]
pub(super) struct Step {
    /// Shown now.
    pub(super) show: Vec<Chunk>,
    /// Appended to what was spilled before.
    pub(super) spill: Option<Bytes>,
}

impl Splitter {
    pub(super) fn new(
        session: &Session,
        policy: &Policy,
        placement: Placement,
        spill_above: Option<u64>,
    ) -> Self {
        Self {
            session: session.clone(),
            policy: policy.clone(),
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

    pub(super) fn push(&mut self, chunk: Chunk) -> Step {
        if matches!(&chunk, Chunk::Bytes(bytes) if bytes.is_empty()) {
            return Step {
                show: self.show(),
                spill: None,
            };
        }
        let goes_on = self.is_open && self.is_in_chunks;
        self.is_in_chunks = matches!(chunk, Chunk::Bytes(_));
        let spill = match chunk {
            Chunk::Bytes(bytes) if goes_on => self.go_on(bytes),
            Chunk::Bytes(bytes) if self.is_full() => self.join(&bytes),
            Chunk::Bytes(bytes) => {
                self.begin(None, true);
                self.go_on(bytes)
            }
            Chunk::Part(Part::Text(text)) if self.is_full() => self.join(text.as_bytes()),
            Chunk::Part(Part::Text(text)) => self.whole(text, None),
            Chunk::Part(Part::Json(value)) => {
                let text = value.to_string();
                // A document counts for itself: over the limit it is shown as text, within it
                // passes.
                let is_over = size_of_text(&self.session, self.policy.limit, &text)
                    .is_over(self.policy.limit);
                if is_over {
                    self.whole(text, Some(value))
                } else {
                    self.pass(Part::Json(value))
                }
            }
            Chunk::Part(part @ (Part::Media { .. } | Part::Link { .. } | Part::Opaque(_))) => {
                self.pass(part)
            }
        };
        Step {
            show: self.show(),
            spill,
        }
    }

    /// Nothing comes any more.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_open)
            && let Some(Slot::Text(text)) = self.slots.last_mut()
        {
            text.end(self.session.meter());
            self.ended = self
                .ended
                .plus(size(&self.session, self.policy.limit, text));
        }
    }

    /// The slot of the text that would have gone on.
    pub(super) fn last_in_chunks(&self) -> Option<usize> {
        let is_open = matches!(self.slots.last(), Some(Slot::Text(text)) if text.comes_in_chunks);
        self.slots.len().checked_sub(1).filter(|_| is_open)
    }

    /// All texts together, once nothing comes any more.
    pub(super) fn size(&self) -> Size {
        self.ended
    }

    /// The slots of spilled texts that may be shown whole after all: the shortest ones, as many as
    /// are within the limit.
    pub(super) fn wanted_back(&self) -> Vec<usize> {
        let limit = self.policy.limit;
        let mut texts: Vec<(usize, Size, bool)> = Vec::new();
        for (slot, part) in self.slots.iter().enumerate() {
            if let Slot::Text(text) = part {
                let is_spilled = matches!(text.content, Content::Spilled(_));
                texts.push((slot, size(&self.session, limit, text), is_spilled));
            }
        }
        if !texts.iter().any(|(_, _, is_spilled)| *is_spilled) {
            return Vec::new();
        }
        texts.sort_by_key(|(slot, size, _)| (size.bytes, *slot));
        let mut sum = Size::default();
        let within = texts.into_iter().take_while(|(_, size, _)| {
            sum = sum.plus(*size);
            !sum.is_over(limit)
        });
        within
            .filter(|(_, _, is_spilled)| *is_spilled)
            .map(|(slot, _, _)| slot)
            .collect()
    }

    /// The store failed: what was spilled is lost. Later texts are spilled anew: the store may have
    /// recovered.
    pub(super) fn lose_spilled(&mut self) {
        self.spilled = 0;
        self.spilled_texts(|text, _| text.content = Content::Lost);
    }

    /// The store failed, and `bytes` are all that was spilled.
    pub(super) fn take_back(&mut self, bytes: &[u8]) {
        self.spilled_texts(|text, start| {
            // Both are within what was spilled, so they are within a usize.
            let (start, length) = (start as usize, text.bytes as usize);
            text.content = Content::Memory(bytes[start..start + length].to_vec());
        });
        self.spilled = 0;
    }

    fn spilled_texts(&mut self, change: impl Fn(&mut Text, u64)) {
        for slot in &mut self.slots {
            if let Slot::Text(text) = slot
                && let Content::Spilled(start) = text.content
            {
                change(text, start);
            }
        }
    }

    fn begin(&mut self, json: Option<Value>, comes_in_chunks: bool) {
        self.end();
        let counts = match self.policy.limit {
            Limit::Bytes(_) => Counts::Nothing,
            Limit::Tokens { tokens } => Counts::Tokens(tokens),
        };
        let mut text = Text::new(
            self.policy
                .preview
                .sketch(self.policy.preview_length.at_most()),
            counts,
        );
        (text.json, text.comes_in_chunks) = (json, comes_in_chunks);
        self.slots.push(Slot::Text(text));
        self.is_open = true;
    }

    fn whole(&mut self, text: String, json: Option<Value>) -> Option<Bytes> {
        self.begin(json, false);
        let spill = self.go_on(text.into());
        self.end();
        spill
    }

    /// Whether no more texts are kept apart.
    fn is_full(&mut self) -> bool {
        if !self.last_is_several() {
            self.end();
        }
        self.slots.len() >= MAX_SLOTS && self.ended.is_over(self.policy.limit)
    }

    fn last_is_several(&self) -> bool {
        matches!(self.slots.last(), Some(Slot::Text(text)) if text.is_several)
    }

    /// The next of the texts that are one.
    fn join(&mut self, text: &[u8]) -> Option<Bytes> {
        if self.is_open {
            return self.go_on([b"\n", text].concat().into());
        }
        // Chunks may be among them, and end inside a character.
        self.begin(None, true);
        if let Some(Slot::Text(joined)) = self.slots.last_mut() {
            joined.is_several = true;
        }
        self.go_on(Bytes::copy_from_slice(text))
    }

    fn pass(&mut self, part: Part) -> Option<Bytes> {
        self.end();
        self.slots.push(Slot::Part(part));
        None
    }

    fn go_on(&mut self, bytes: Bytes) -> Option<Bytes> {
        let meter = self.session.meter();
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
            && so_far.is_over(self.policy.limit);
        if !spills {
            hold(held, bytes);
            return None;
        }
        let bytes = if held.is_empty() {
            bytes
        } else {
            hold(held, bytes);
            Bytes::from(std::mem::take(held))
        };
        text.note_tokens(&bytes, sure_gain(self.policy.limit), meter);
        text.content = Content::Spilled(self.spilled);
        self.spilled += bytes.len() as u64;
        Some(bytes)
    }

    /// What can be shown now that is going to be shown whatever follows: the parts before the first
    /// text, and of that the head.
    fn show(&mut self) -> Vec<Chunk> {
        let mut show = Vec::new();
        if self.placement == Placement::First || !has_settled_head(&self.policy) {
            return show;
        }
        while let Some(slot) = self.slots.get_mut(self.shown.0) {
            if let Slot::Text(text) = slot {
                let head = text.sketch.settled(first_head(&self.policy));
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
                self.passed = self
                    .passed
                    .plus(part_size(&self.session, self.policy.limit, &part));
                show.push(Chunk::Part(part));
            }
            self.shown.0 += 1;
        }
        show
    }
}

/// The head that the first text has in every preview, in bytes.
pub(super) fn first_head(policy: &Policy) -> usize {
    policy.preview_length.at_most() / 2
}

/// Whether each preview of the first text begins with its head: it is known before the end, and
/// none is too small for that.
pub(super) fn has_settled_head(policy: &Policy) -> bool {
    let is_named = policy.hooks.preview.is_none();
    let is_known = is_named && policy.preview.begins_with_head() && !policy.preview_length.grows();
    is_known && policy.preview_length.at_most() - first_head(policy) > longest_marks()
}

/// Appends without a copy where there is nothing yet.
fn hold(held: &mut Vec<u8>, bytes: Bytes) {
    if held.is_empty() {
        *held = bytes.into();
    } else {
        held.extend_from_slice(&bytes);
    }
}
