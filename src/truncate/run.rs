//! Processes one result: carries out what `held` and the plan decide.

use std::sync::Arc;

use crate::backend::layout::Phase;
use futures_util::StreamExt;

use super::held::Held;
use super::job::{Job, report, text_bytes};
use super::plan::{Cut, Plan, plan, plan_lost};
use super::spill::{MAX_TAKEN_BACK, Spill};
use super::text::Content;
use super::truncated::Truncated;
use crate::backend::content::{Id, MAX_WHOLE};
use crate::backend::{BackendError, Location};
use crate::content::{Body, Chunk, Part, ToolOutput};
use crate::error::OffloadError;
use crate::read_back::{named_in, page_of_other};
use crate::report::{Change, Decision, DecisionFailure, ErrorSource, Outcome, Reason, Report};

/// Truncates a result without a handler, reading it to its end. `failure` is the reason why no
/// handler decided.
pub(super) async fn truncate_by_limit(
    job: Arc<Job>,
    output: ToolOutput,
    failure: Option<DecisionFailure>,
) -> Result<Truncated, OffloadError> {
    let ToolOutput { body, is_error } = output;
    let is_stream = matches!(body, Body::Stream(_));
    let mut run = Run::new(job, is_stream);
    let mut interrupted = None;
    let mut chunks = body.chunks();
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(chunk) => run.feed(chunk).await?,
            Err(error) => {
                interrupted = Some(error);
                break;
            }
        }
    }
    let (parts, mut report) = run.finish(interrupted.is_some()).await?;
    if let (Some(decision), Some(failure)) = (report.decisions.first_mut(), failure) {
        decision.fail_first(failure);
    }
    Ok(Truncated {
        parts,
        is_error,
        interrupted,
        report,
    })
}

/// The truncation of one result.
pub(super) struct Run {
    job: Arc<Job>,
    id: Id,
    held: Held,
    spill: Spill,
    /// True if the result stays whole: the store failed, and everything that arrived is in memory.
    stays: bool,
    decision: Decision,
}

impl Run {
    pub(super) fn new(job: Arc<Job>, is_stream: bool) -> Self {
        // A user's preview sees the whole text.
        let spill_above = if job.policy.hooks.preview.is_some() {
            MAX_WHOLE
        } else {
            0
        };
        let call = &job.call;
        let (id, failure) = job
            .session
            .id_of(Phase::Truncate, &call.id, || call.clone());
        let mut decision = job.decision(Outcome::Kept(Reason::WithinLimit));
        decision.fail_first(failure);
        Self {
            held: Held::new(job.clone(), is_stream.then_some(spill_above)),
            spill: Spill::new(job.clone(), id.clone()),
            stays: false,
            decision,
            id,
            job,
        }
    }

    /// Continues with `chunk`.
    pub(super) async fn feed(&mut self, chunk: Chunk) -> Result<(), OffloadError> {
        let Some(bytes) = self.held.push(chunk) else {
            return Ok(());
        };
        self.stays = false;
        if let Err(error) = self.spill.write(bytes.clone()).await {
            let spilled = if self.failed(error)? {
                self.all_spilled(&bytes).await
            } else {
                None
            };
            self.spill.discard();
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
        let (said, keeps) = self.job.store_failed(error)?;
        self.decision.fail(said);
        Ok(keeps)
    }

    /// Ends the result. Returns the parts to show.
    pub(super) async fn finish(
        mut self,
        interrupted: bool,
    ) -> Result<(Vec<Part>, Report), OffloadError> {
        self.held.end();
        let before = self.held.size();
        if self.stays {
            self.keep();
        } else if let Some((location, parts)) = self.page().await {
            self.decision.outcome = Outcome::Paged;
            self.decision.locations = vec![location];
            self.held.replace_all(parts);
        } else {
            if self.spill.length > 0 {
                self.restore(&self.held.wanted_back()).await?;
            }
            let broken = interrupted.then(|| self.held.last_in_chunks()).flatten();
            let cuts = loop {
                let Plan { cuts, missing } = plan(&self.job, &self.id, &self.held, broken);
                if missing.is_empty() {
                    break cuts;
                }
                // Texts that can't be restored are lost, and a new plan is made.
                self.restore(&missing).await?;
            };
            for cut in cuts {
                self.store(cut).await?;
            }
        }
        let parts = self.held.into_parts();
        let after = parts.iter().map(text_bytes).sum();
        self.decision.bytes = Change { before, after };
        Ok((parts, report(Some(self.decision))))
    }

    /// Keeps everything held. Text lost by an earlier failure is replaced by a hint that says so.
    fn keep(&mut self) {
        self.decision.outcome = Outcome::Kept(Reason::StoreFailed);
        for cut in plan_lost(&self.job, &self.id, &self.held) {
            self.decision.outcome = Outcome::Lost;
            self.held
                .replace(&cut.slots, self.job.session.hint(cut.draft, None));
        }
    }

    /// Takes spilled texts back into memory. Texts that can't be read are lost.
    async fn restore(&mut self, slots: &[usize]) -> Result<(), OffloadError> {
        for slot in slots {
            let Some(range) = self.held.spilled(*slot) else {
                continue;
            };
            let bytes = match self.spill.read(range).await {
                Ok(bytes) => Some(bytes),
                Err(error) => {
                    self.failed(error)?;
                    // Only this text is lost: the others may still get their names.
                    None
                }
            };
            self.held.take_back(*slot, bytes);
        }
        Ok(())
    }

    /// Stores a cut, and puts its hint in place.
    async fn store(&mut self, cut: Cut) -> Result<(), OffloadError> {
        let problem = cut.problem.as_ref();
        (self.decision).fail_first(problem.map(|problem| ErrorSource::Callback.said(problem)));
        let sources = self.held.sources(&cut.slots, cut.manifest.as_deref());
        let stored = match sources {
            // A text lost earlier has been reported with its error.
            None => None,
            Some(sources) => match self.spill.store(cut.number, sources).await {
                Ok(location) => {
                    self.decision.locations.push(location.clone());
                    Some(location)
                }
                Err(error) => {
                    if self.failed(error)? && self.take_back(&cut.slots).await? {
                        if let Outcome::Kept(reason) = &mut self.decision.outcome {
                            *reason = Reason::StoreFailed;
                        }
                        return Ok(());
                    }
                    None
                }
            },
        };
        if stored.is_none() {
            self.decision.outcome = Outcome::Lost;
        } else if self.decision.outcome != Outcome::Lost {
            self.decision.outcome = Outcome::Truncated;
        }
        self.held
            .replace(&cut.slots, self.job.session.hint(cut.draft, stored));
        Ok(())
    }

    /// Takes texts that could not be stored back into memory, to show them instead; `false` if they
    /// are too long or lost.
    async fn take_back(&mut self, slots: &[usize]) -> Result<bool, OffloadError> {
        let spilled = slots.iter().filter_map(|slot| self.held.spilled(*slot));
        let length: u64 = spilled.map(|range| range.end - range.start).sum();
        if length > MAX_TAKEN_BACK {
            return Ok(false);
        }
        self.restore(slots).await?;
        Ok(self.held.is_in_memory(slots))
    }

    /// The location of the stored content and a page of it, if another reader returned this result
    /// from there.
    async fn page(&mut self) -> Option<(Location, Vec<Part>)> {
        let Job {
            session,
            call,
            policy,
            ..
        } = &*self.job;
        let text = self
            .held
            .only_text()
            .filter(|_| self.held.is_over_limit())?;
        if text.bytes > MAX_WHOLE {
            return None;
        }
        let stored = named_in(session, call).await?;
        let read;
        let result = match (&text.content, text.spilled()) {
            (Content::Memory(bytes), _) => bytes,
            (_, Some(range)) => {
                read = self.spill.read(range).await.ok()?;
                &read
            }
            _ => return None,
        };
        let gain = usize::try_from(Change::most_after(text.length())).unwrap_or(usize::MAX);
        let limit = policy.max_length_for_trunc.min(gain);
        let parts = page_of_other(session, &call.name, &stored, result, limit).await?;
        Some((stored.location, parts))
    }
}
