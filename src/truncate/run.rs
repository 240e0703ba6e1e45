//! Processes one result: carries out what `held` and the plan decide.

use futures_util::TryStreamExt;

use super::held::{Held, Piece, text_bytes};
use super::job::{Job, MAX_TAKEN_BACK};
use super::plan::{Cut, missing, plan};
use super::spill::Spill;
use super::truncated::Truncated;
use crate::backend::content::{Id, MAX_WHOLE};
use crate::backend::layout::Phase;
use crate::backend::{BackendError, Location};
use crate::content::{Body, Chunk, Part, ToolOutput};
use crate::error::OffloadError;
use crate::read_back::{named_in, page_of_other};
use crate::report::{Change, Decision, DecisionFailure, ErrorSource, Outcome, Reason};

/// Truncates a result without a handler, reading it to its end. `failure` is the reason why no
/// handler decided.
pub(super) async fn truncate_by_limit(
    job: Job<'_>,
    output: ToolOutput,
    failure: Option<DecisionFailure>,
) -> Result<Truncated, OffloadError> {
    let ToolOutput { body, is_error } = output;
    let mut run = Run::new(job, matches!(body, Body::Stream(_)));
    let mut chunks = body.chunks();
    let interrupted = loop {
        match chunks.try_next().await {
            Ok(Some(chunk)) => run.feed(chunk).await?,
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let (parts, mut decision) = run.finish(interrupted.is_some()).await?;
    decision.fail_first(failure);
    Ok(Truncated::new(parts, is_error, interrupted, Some(decision)))
}

/// The truncation of one result.
struct Run<'a> {
    job: Job<'a>,
    id: Id,
    held: Held<'a>,
    spill: Spill,
    /// True if the result stays whole: the store failed, and everything that arrived is in memory.
    stays: bool,
    decision: Decision,
}

impl<'a> Run<'a> {
    fn new(job: Job<'a>, is_stream: bool) -> Self {
        // A user's preview sees the whole text.
        let spill_above = if job.policy.hooks.preview.is_some() {
            MAX_WHOLE
        } else {
            0
        };
        let call = job.call;
        let (id, failure) = job
            .session
            .id_of(Phase::Truncate, &call.id, || call.clone());
        let mut decision = job.decision(Outcome::Kept(Reason::WithinLimit));
        decision.fail_first(failure);
        Self {
            held: Held::new(job, is_stream.then_some(spill_above)),
            spill: Spill::default(),
            stays: false,
            decision,
            id,
            job,
        }
    }

    /// Continues with `chunk`.
    async fn feed(&mut self, chunk: Chunk) -> Result<(), OffloadError> {
        let Some(bytes) = self.held.push(chunk) else {
            return Ok(());
        };
        self.stays = false;
        if let Err(error) = self.spill.write(self.job, bytes.clone()).await {
            let spilled = if self.failed(error)? {
                self.all_spilled(&bytes).await
            } else {
                None
            };
            self.spill = Spill::default();
            self.held.take_back_all(spilled.as_deref());
            self.stays = spilled.is_some();
        }
        Ok(())
    }

    /// All spilled bytes, followed by `last`, which could not be written; `None` if that, or the
    /// result so far, is too long, or if it is lost.
    async fn all_spilled(&mut self, last: &[u8]) -> Option<Vec<u8>> {
        let before = self.spill.length;
        let longest = self.held.length().max(before + last.len() as u64);
        if longest > MAX_TAKEN_BACK {
            return None;
        }
        let mut bytes = self.spill.read(0..before).await.ok()?;
        bytes.extend_from_slice(last);
        Some(bytes)
    }

    /// Records the store's error, or returns it if it is to end the call. `true` if the original is
    /// kept.
    fn failed(&mut self, error: BackendError) -> Result<bool, OffloadError> {
        let rule = self.job.session.settings.on_offload_error;
        rule.apply(&mut self.decision, error)
    }

    /// Ends the result. Returns the parts to show.
    async fn finish(mut self, interrupted: bool) -> Result<(Vec<Part>, Decision), OffloadError> {
        self.held.end();
        let before = self.held.size();
        if let Some((location, parts)) = self.page().await {
            self.decision.outcome = Outcome::Paged;
            self.decision.locations = vec![location];
            self.held.replace_all(parts);
        } else {
            self.cut(interrupted).await?;
        }
        let parts = self.held.into_parts();
        let after = parts.iter().map(text_bytes).sum();
        self.decision.bytes = Change { before, after };
        Ok((parts, self.decision))
    }

    /// Plans the cuts, stores them and shows their hints. If the result stays, only text lost by an earlier failure
    /// is replaced, by a hint that says so.
    async fn cut(&mut self, interrupted: bool) -> Result<(), OffloadError> {
        if self.stays {
            self.decision.outcome = Outcome::Kept(Reason::StoreFailed);
        }
        self.restore(&self.held.wanted_back()).await?;
        let broken = interrupted.then(|| self.held.last_in_chunks()).flatten();
        let cuts = loop {
            let cuts = plan(self.job, &self.id, &self.held, broken, self.stays);
            let missing = missing(&self.held, &cuts);
            if missing.is_empty() {
                break cuts;
            }
            // Texts that can't be restored are lost, and a new plan is made.
            self.restore(&missing).await?;
        };
        // Names follow the order of the parts: `<id>`, `<id>-2`, …
        for (cut, number) in cuts.into_iter().zip(1..) {
            self.store(cut, number).await?;
        }
        Ok(())
    }

    /// Takes spilled texts back into memory. Texts that can't be read are lost. Returns `true` if none is.
    async fn restore(&mut self, slots: &[usize]) -> Result<bool, OffloadError> {
        let mut are_all_back = true;
        for slot in slots {
            let Some(range) = self.held.spilled(*slot) else {
                continue;
            };
            let bytes = match self.spill.read(range).await {
                Ok(bytes) => Some(bytes),
                Err(error) => {
                    self.failed(error)?;
                    // Only this text is lost: the others may still get their names.
                    are_all_back = false;
                    None
                }
            };
            self.held.take_back(*slot, bytes);
        }
        Ok(are_all_back)
    }

    /// Stores a cut as the result's `number`-th text, and puts its hint in place.
    async fn store(&mut self, cut: Cut, number: usize) -> Result<(), OffloadError> {
        let problem = cut.problem.as_ref();
        (self.decision).fail_first(problem.map(|problem| ErrorSource::Callback.said(problem)));
        // A text lost earlier has been reported with its error.
        let mut location = None;
        if let Some(pieces) = self.held.pieces(&cut.slots, cut.manifest.as_deref()) {
            match self.spill.store(self.job, &self.id, number, pieces).await {
                Ok(stored) => location = Some(stored),
                Err(error) => {
                    if self.failed(error)? && self.take_back(&cut.slots).await? {
                        if let Outcome::Kept(reason) = &mut self.decision.outcome {
                            *reason = Reason::StoreFailed;
                        }
                        return Ok(());
                    }
                }
            }
        }
        self.show(cut, location);
        Ok(())
    }

    /// Puts the hint of a cut in place; without a location its text is lost.
    fn show(&mut self, cut: Cut, location: Option<Location>) {
        if location.is_none() {
            self.decision.outcome = Outcome::Lost;
        } else if self.decision.outcome != Outcome::Lost {
            self.decision.outcome = Outcome::Truncated;
        }
        self.decision.locations.extend(location.clone());
        self.held
            .replace(&cut.slots, self.job.session.hint(cut.draft, location));
    }

    /// Takes texts that could not be stored back into memory, to show them instead; `false` if they
    /// are too long or lost.
    async fn take_back(&mut self, slots: &[usize]) -> Result<bool, OffloadError> {
        let spilled = slots.iter().filter_map(|slot| self.held.spilled(*slot));
        let length: u64 = spilled.map(|range| range.end - range.start).sum();
        Ok(length <= MAX_TAKEN_BACK && self.restore(slots).await?)
    }

    /// The location of the stored content and a page of it, if another reader returned this result
    /// from there.
    async fn page(&mut self) -> Option<(Location, Vec<Part>)> {
        let Job { session, call, .. } = self.job;
        let text = self.held.only_text()?;
        if self.stays || !self.held.is_over_limit() || text.bytes > MAX_WHOLE {
            return None;
        }
        let stored = named_in(session, call).await?;
        let read;
        let result = match text.content.as_ref()? {
            Piece::Memory(bytes) => bytes,
            Piece::Spilled(range) => {
                read = self.spill.read(range.clone()).await.ok()?;
                &read
            }
        };
        let gain = usize::try_from(Change::most_after(text.length())).unwrap_or(usize::MAX);
        let limit = self.job.policy.max_length_for_trunc.min(gain);
        let parts = page_of_other(session, &call.name, &stored, result, limit).await?;
        Some((stored.location, parts))
    }
}
