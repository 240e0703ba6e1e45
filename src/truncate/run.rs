//! One result on its way: what the splitter and the plan decide, done.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::cut::{self, Cut, Joined};
use super::pages::Pages;
use super::passing::{grows_by, passing};
use super::save::{Place, Saved};
use super::spill::{Source, Spill};
use super::splitter::{self, Slot, Splitter, part_size, text_bytes};
use super::text::{Content, Text};
use super::truncated::nothing_done;
use super::written::not_there;
use crate::backend::{Backend, BackendError};
use crate::config::{Limit, OnOffloadError, Policy};
use crate::content::{Chunk, Part, ToolCall};
use crate::error::Error;
use crate::hint::Placement;
use crate::report::{Change, Decision, Outcome, Reason, Report, Subject};
use crate::session::Session;
use crate::store::{Id, MAX_WHOLE, Phase};

/// A stream that could not be stored is shown whole up to so many bytes: more has no place in
/// memory, nor in a context.
const MAX_TAKEN_BACK: u64 = 16 << 20;

/// What one call returned, as far as it has come.
pub(super) struct Run {
    session: Session,
    call: ToolCall,
    id: Id,
    policy: Policy,
    backend: Arc<dyn Backend>,
    splitter: Splitter,
    pages: Pages,
    spill: Spill,
    /// Everything passes: the store failed, and all that came is at hand.
    passes: bool,
    decision: Decision,
}

impl Run {
    /// `None` if the tool's results are never truncated.
    pub(super) fn new(
        session: &Session,
        call: &ToolCall,
        placement: Placement,
        is_stream: bool,
    ) -> Option<Self> {
        let policy = session.policy(&call.name).clone();
        let backend = policy.backend().cloned().filter(|_| policy.truncates)?;
        // A preview by user's code sees the whole text.
        let spill_above = if policy.hooks.preview.is_some() {
            MAX_WHOLE
        } else {
            0
        };
        let splitter = Splitter::new(
            session,
            &policy,
            placement,
            is_stream.then_some(spill_above),
        );
        let (id, error) = session.id_of(Phase::Truncate, &call.id, || call.clone());
        let decision = Decision {
            tool: call.name.clone(),
            call_id: call.id.clone(),
            message: None,
            subject: Subject::Result,
            outcome: Outcome::Kept(Reason::WithinLimit),
            bytes: Change::default(),
            tokens: matches!(policy.limit, Limit::Tokens { .. }).then(Change::default),
            locations: Vec::new(),
            error,
        };
        Some(Self {
            session: session.clone(),
            call: call.clone(),
            id,
            policy,
            spill: Spill::new(Arc::clone(&backend)),
            backend,
            splitter,
            pages: Pages::default(),
            passes: false,
            decision,
        })
    }

    /// The result goes on with `chunk`. What comes back is shown now.
    pub(super) async fn feed(&mut self, chunk: Chunk) -> Result<Vec<Chunk>, Error> {
        if self.passes {
            self.passes_by(&chunk);
            return Ok(vec![chunk]);
        }
        // The pieces shown before do not wait for this.
        self.pages.compare().await;
        let step = self.splitter.push(chunk);
        self.pages.read_on(
            &self.session,
            &self.call,
            &self.splitter,
            step.spill.as_ref(),
        );
        if let Some(bytes) = step.spill
            && let Err(error) = self.spill.write(bytes.clone()).await
        {
            self.failed(error)?;
            if self.session.settings().on_offload_error == OnOffloadError::KeepOriginal
                && let Some(spilled) = self.take_back_all(&bytes).await
            {
                self.splitter.take_back(&spilled);
                self.passes = true;
                return Ok(step.show.into_iter().chain(self.pass_held()).collect());
            }
            self.spill.lose();
            self.splitter.lose_spilled();
        }
        Ok(step.show)
    }

    /// All that was spilled, `last` at its end, which could not be; `None` if that is too much or
    /// is lost.
    async fn take_back_all(&mut self, last: &[u8]) -> Option<Vec<u8>> {
        let before = self.spill.length();
        if before + last.len() as u64 > MAX_TAKEN_BACK {
            return None;
        }
        let mut bytes = self.spill.read(0..before).await.ok()?;
        bytes.extend_from_slice(last);
        Some(bytes)
    }

    /// What the store said, and whether that is the end of it.
    fn failed(&mut self, error: BackendError) -> Result<(), Error> {
        if self.session.settings().on_offload_error == OnOffloadError::Fail {
            let (tool, call_id) = (self.call.name.clone(), self.call.id.clone());
            return Err(Error::Offload {
                tool,
                call_id,
                source: error,
            });
        }
        self.decision.error = Some(error.to_string());
        Ok(())
    }

    /// All that is held, as it came.
    fn pass_held(&mut self) -> Vec<Chunk> {
        let (shown_slots, shown_bytes) = self.splitter.shown;
        self.decision.bytes = Change::none(self.splitter.passed.bytes + shown_bytes as u64);
        let mut lost = cut::lost(
            &self.session,
            &self.policy,
            &self.call,
            &self.id,
            &self.splitter.slots,
        )
        .into_iter();
        let slots = std::mem::take(&mut self.splitter.slots);
        let mut chunks = Vec::new();
        for (index, slot) in slots.into_iter().enumerate() {
            let shown = if index == shown_slots { shown_bytes } else { 0 };
            match slot {
                // An earlier failure took it. What is left is to say so.
                Slot::Text(text) if text.is_lost() => {
                    let Some(cut) = lost.next() else { continue };
                    let mut hint = cut.hint(&self.session, &self.call.name, None, false);
                    hint.placement = self.splitter.placement;
                    let hint = hint.render();
                    self.decision.outcome = Outcome::Lost;
                    self.decision.bytes.before += text.bytes.saturating_sub(shown as u64);
                    self.decision.bytes.after += (hint.len() - shown) as u64;
                    chunks.push(if shown > 0 {
                        Chunk::Bytes(Bytes::from(hint).slice(shown..))
                    } else {
                        Chunk::Part(Part::Text(hint))
                    });
                }
                Slot::Text(text) => {
                    let longer = if text.is_utf8() {
                        0
                    } else {
                        grows_by(&text, shown)
                    };
                    let passing = passing(text, shown);
                    passing.iter().for_each(|chunk| self.passes_by(chunk));
                    self.decision.bytes.after += longer;
                    chunks.extend(passing);
                }
                Slot::Part(part) => {
                    let part = Chunk::Part(part);
                    self.passes_by(&part);
                    chunks.push(part);
                }
                Slot::Shown => {}
            }
        }
        chunks
    }

    /// Counts what passes, in bytes: nobody is going to count its tokens, it may be of any length.
    fn passes_by(&mut self, chunk: &Chunk) {
        let bytes = match chunk {
            Chunk::Bytes(bytes) => bytes.len() as u64,
            Chunk::Part(part) => text_bytes(part),
        };
        let Change { before, after } = &mut self.decision.bytes;
        (*before, *after) = (*before + bytes, *after + bytes);
    }

    /// The result has ended. What comes back is shown behind the rest.
    pub(super) async fn finish(mut self, interrupted: bool) -> Result<(Vec<Chunk>, Report), Error> {
        if self.passes {
            if self.decision.outcome != Outcome::Lost {
                self.decision.outcome = Outcome::Kept(Reason::StoreFailed);
            }
            self.decision.tokens = None;
            return Ok((Vec::new(), self.report()));
        }
        self.splitter.end();
        self.see_all();
        let (session, call, limit) = (&self.session, &self.call, self.policy.limit);
        let stored = self
            .pages
            .finish(session, call, &self.splitter, limit)
            .await;
        if let Some((location, parts)) = stored {
            self.decision.outcome = Outcome::Paged;
            self.decision.locations = vec![location];
            self.splitter.slots = parts.into_iter().map(Slot::Part).collect();
        } else {
            self.restore(self.splitter.wanted_back()).await?;
            let broken = if interrupted {
                self.splitter.last_in_chunks()
            } else {
                None
            };
            let plan = loop {
                let plan = cut::plan(
                    &self.session,
                    &self.policy,
                    &self.call,
                    &self.id,
                    &self.splitter.slots,
                    broken,
                );
                let left_whole = self.left_whole(&plan);
                if left_whole.is_empty() {
                    break plan;
                }
                // Where that fails they are lost, and there is another plan.
                self.restore(left_whole).await?;
            };
            self.save_all(plan).await?;
        }
        let chunks = self.show_rest();
        Ok((chunks, self.report()))
    }

    fn report(self) -> Report {
        Report {
            decisions: vec![self.decision],
            ..nothing_done()
        }
    }

    /// Notes how much there is before anything is changed.
    fn see_all(&mut self) {
        let mut bytes = self.splitter.passed.bytes;
        let mut tokens = self.splitter.passed.tokens;
        for slot in &self.splitter.slots {
            match slot {
                Slot::Text(text) => {
                    bytes += text.bytes;
                    tokens = tokens.saturating_add(
                        splitter::size(&self.session, self.policy.limit, text).tokens,
                    );
                }
                Slot::Part(part) => {
                    let size = part_size(&self.session, self.policy.limit, part);
                    bytes += size.bytes;
                    tokens = tokens.saturating_add(size.tokens);
                }
                Slot::Shown => {}
            }
        }
        self.decision.bytes.before = bytes;
        let is_counted = |slot: &Slot| !matches!(slot, Slot::Text(text) if text.has_more_tokens());
        if !self.splitter.slots.iter().all(is_counted) {
            self.decision.tokens = None;
        }
        if let Some(change) = &mut self.decision.tokens {
            change.before = tokens;
        }
    }

    /// The slots of spilled texts that the plan leaves as they are.
    fn left_whole(&self, plan: &[Cut]) -> Vec<usize> {
        let joined = plan
            .iter()
            .filter_map(|cut| cut.joined.as_ref())
            .flat_map(|joined| &joined.slots);
        let cut: HashSet<usize> = plan
            .iter()
            .map(|cut| cut.slot)
            .chain(joined.copied())
            .collect();
        let is_spilled = |slot: &Slot| {
            matches!(
                slot,
                Slot::Text(Text {
                    content: Content::Spilled(_),
                    ..
                })
            )
        };
        let slots = self.splitter.slots.iter().enumerate();
        slots
            .filter(|(index, slot)| is_spilled(slot) && !cut.contains(index))
            .map(|(index, _)| index)
            .collect()
    }

    /// Takes spilled texts back into memory.
    async fn restore(&mut self, slots: Vec<usize>) -> Result<(), Error> {
        for slot in slots {
            let Slot::Text(text) = &self.splitter.slots[slot] else {
                continue;
            };
            let Content::Spilled(start) = text.content else {
                continue;
            };
            let end = start + text.bytes;
            match self.spill.read(start..end).await {
                Ok(bytes) => {
                    if let Slot::Text(text) = &mut self.splitter.slots[slot] {
                        text.content = Content::Memory(bytes);
                    }
                }
                Err(error) => {
                    self.failed(error)?;
                    // This one alone: the others may still get their names.
                    if let Slot::Text(text) = &mut self.splitter.slots[slot] {
                        text.content = Content::Lost;
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores what the plan cuts, and puts the hints in its place.
    async fn save_all(&mut self, plan: Vec<Cut>) -> Result<(), Error> {
        for cut in plan {
            self.decision.error = self.decision.error.take().or(cut.problem.clone());
            let saved = match self.save(&cut).await {
                Ok(Saved {
                    location,
                    is_local,
                    error,
                }) => {
                    self.decision.error = error
                        .map(|error| error.to_string())
                        .or(self.decision.error.take());
                    Some((location, is_local))
                }
                Err(error) => {
                    // A text that was lost earlier has been reported with the error of that time.
                    if !self.is_lost(&cut) {
                        self.failed(error)?;
                    }
                    let keeps =
                        self.session.settings().on_offload_error == OnOffloadError::KeepOriginal;
                    if keeps && self.take_back(&cut).await {
                        self.decision.outcome = match self.decision.outcome {
                            Outcome::Kept(_) => Outcome::Kept(Reason::StoreFailed),
                            changed => changed,
                        };
                        continue;
                    }
                    None
                }
            };
            self.decision.outcome = match (&saved, self.decision.outcome) {
                (None, _) | (_, Outcome::Lost) => Outcome::Lost,
                (Some(_), _) => Outcome::Truncated,
            };
            let is_local = saved.as_ref().is_some_and(|(_, is_local)| *is_local);
            let mut hint = cut.hint(
                &self.session,
                &self.call.name,
                saved.map(|(location, _)| location),
                is_local,
            );
            hint.placement = self.splitter.placement;
            self.decision.locations.extend(hint.location.clone());
            for slot in cut.joined.iter().flat_map(|joined| &joined.slots) {
                self.splitter.slots[*slot] = Slot::Shown;
            }
            self.splitter.slots[cut.slot] = Slot::Part(Part::Text(hint.render()));
        }
        Ok(())
    }

    /// Takes back into memory what the cut would have stored, to show it instead; `false` if that
    /// is too much or is lost.
    async fn take_back(&mut self, cut: &Cut) -> bool {
        let slots = cut
            .joined
            .as_ref()
            .map_or_else(|| vec![cut.slot], |joined| joined.slots.clone());
        let spilled = slots.iter().map(|slot| match &self.splitter.slots[*slot] {
            Slot::Text(Text {
                content: Content::Spilled(_),
                bytes,
                ..
            }) => *bytes,
            _ => 0,
        });
        if spilled.sum::<u64>() > MAX_TAKEN_BACK {
            return false;
        }
        if self.restore(slots.clone()).await.is_err() {
            return false;
        }
        slots.iter().all(|slot| {
            matches!(
                &self.splitter.slots[*slot],
                Slot::Text(Text {
                    content: Content::Memory(_),
                    ..
                })
            )
        })
    }

    fn is_lost(&self, cut: &Cut) -> bool {
        let mut slots =
            std::iter::once(&cut.slot).chain(cut.joined.iter().flat_map(|joined| &joined.slots));
        slots.any(|slot| matches!(&self.splitter.slots[*slot], Slot::Text(text) if text.is_lost()))
    }

    async fn save(&mut self, cut: &Cut) -> Result<Saved, BackendError> {
        let (place, sources) = (self.place(cut), self.sources(cut)?);
        self.spill.save(&place, sources).await
    }

    fn place(&self, cut: &Cut) -> Place {
        Place {
            session: self.session.clone(),
            backend: self.backend.clone(),
            id: self.id.clone(),
            number: cut.number,
        }
    }

    /// What the cut stores, piece by piece.
    fn sources(&self, cut: &Cut) -> Result<Vec<Source>, BackendError> {
        let Some(Joined { manifest, slots }) = &cut.joined else {
            return Ok(vec![self.source(cut.slot)?]);
        };
        let mut sources = vec![Source::Bytes(Bytes::from(manifest.clone()))];
        for slot in slots {
            sources.push(self.source(*slot)?);
            sources.push(Source::Bytes(Bytes::from_static(b"\n")));
        }
        Ok(sources)
    }

    fn source(&self, slot: usize) -> Result<Source, BackendError> {
        match &self.splitter.slots[slot] {
            Slot::Text(Text {
                content: Content::Memory(bytes),
                ..
            }) => Ok(Source::Bytes(Bytes::copy_from_slice(bytes))),
            Slot::Text(Text {
                content: Content::Spilled(start),
                bytes,
                ..
            }) => Ok(Source::Spilled(*start..start + bytes)),
            _ => Err(not_there()),
        }
    }

    /// What is shown of what has not been shown.
    fn show_rest(&mut self) -> Vec<Chunk> {
        let (shown_slots, shown_bytes) = self.splitter.shown;
        let slots = std::mem::take(&mut self.splitter.slots);
        self.decision.bytes.after = self.splitter.passed.bytes;
        let mut tokens_after = self.splitter.passed.tokens;
        let mut chunks = Vec::new();
        for (index, slot) in slots.into_iter().enumerate() {
            let shown = if index == shown_slots { shown_bytes } else { 0 };
            let part = match slot {
                // Taken back from the store that failed: it goes on as it came.
                Slot::Text(text) if text.comes_in_chunks && !text.is_utf8() => {
                    let size = splitter::size(&self.session, self.policy.limit, &text);
                    tokens_after = tokens_after.saturating_add(size.tokens);
                    // As it is shown in the end.
                    self.decision.bytes.after +=
                        text.shown().map_or(text.bytes, |text| text.len() as u64);
                    chunks.extend(passing(text, shown));
                    continue;
                }
                Slot::Text(text) => text.into_part(),
                Slot::Part(part) => part,
                Slot::Shown => continue,
            };
            let size = part_size(&self.session, self.policy.limit, &part);
            self.decision.bytes.after += size.bytes;
            tokens_after = tokens_after.saturating_add(size.tokens);
            match part {
                Part::Text(text) if shown == text.len() && shown > 0 => {}
                Part::Text(text) if shown > 0 => {
                    chunks.push(Chunk::Bytes(Bytes::from(text).slice(shown..)));
                }
                part => chunks.push(Chunk::Part(part)),
            }
        }
        if let Some(tokens) = &mut self.decision.tokens {
            tokens.after = tokens_after;
        }
        chunks
    }
}
