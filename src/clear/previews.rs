//! The cost-aware pass: whole results become previews as soon as that is expected to pay.

use std::rc::Rc;

use super::cost::{Sent, best_rewrite};
use super::edit::{Content, Edit};
use super::planner::Planner;
use super::stub::{Case, Line, Stubs, join};
use crate::config::CostAware;
use crate::format::PartRef;
use crate::middleware::Turn;
use crate::report::{CostEstimate, Outcome, Reason};
use offcut_decisions::fingerprint::Fingerprint;

/// The results that could become previews, and the rewrite with the highest gain.
#[derive(Debug, Default)]
pub(super) struct Previews {
    /// In the order of the conversation.
    candidates: Vec<Candidate>,
    /// Index of the first message whose results become previews.
    from: Option<usize>,
    estimate: Option<CostEstimate>,
    /// Gains computed for the first time.
    gains: Vec<(Fingerprint, u64)>,
}

/// A whole result that could become a preview.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// Its index among the results.
    at: usize,
    message: usize,
    /// Tokens that its preview gains; never 0.
    gain: u64,
}

impl Previews {
    /// Chooses the whole results that are to become previews.
    pub(super) fn of(planner: &Planner<'_>, rule: CostAware, turn: &Turn<'_>) -> Self {
        let mut stubs = Stubs::new(planner.session);
        let mut previews = Self::default();
        for (at, slot) in planner.items.outline.slots.iter().enumerate() {
            stubs.begin(slot.head.id);
            let Some((text, key)) = planner.whole_text(rule, at) else {
                continue;
            };
            let gain = planner.ledger.gain(key).unwrap_or_else(|| {
                let gain = planner.gain_of_preview(&mut stubs, at, text);
                previews.gains.push((key, gain));
                gain
            });
            if gain > 0 {
                previews.candidates.push(Candidate {
                    at,
                    message: slot.message,
                    gain,
                });
            }
        }
        previews.reckon(planner, rule, turn);
        previews
    }

    /// Finds the rewrite with the highest net gain.
    fn reckon(&mut self, planner: &Planner<'_>, rule: CostAware, turn: &Turn<'_>) {
        let turns = planner.items.outline.turns;
        let (Some(first), Some(last_turn)) = (self.candidates.first(), turns.last) else {
            self.candidates.clear();
            return;
        };
        let meter = planner.session.meter();
        let first = first.message;
        let mut sent: Vec<Sent> = (first..last_turn)
            .map(|message| Sent {
                tokens: meter.message(turn.conversation, message),
                gain: 0,
            })
            .collect();
        // If a loop passes in originals, the last request held their replacements.
        for repeated in &planner.edits {
            let at = repeated.place.message().checked_sub(first);
            if let (Some(sent), Some(change)) =
                (at.and_then(|at| sent.get_mut(at)), repeated.decision.tokens)
            {
                sent.tokens = sent.tokens.saturating_sub(change.saved());
            }
        }
        for candidate in &self.candidates {
            // An answered result comes before the last turn.
            if let Some(sent) = sent.get_mut(candidate.message - first) {
                sent.gain = sent.gain.saturating_add(candidate.gain);
            }
        }
        let calls = rule.expected_calls.after(turns.begun);
        match best_rewrite(&sent, rule, calls, turn.cache_is_cold) {
            Some((from, estimate)) => {
                self.from = (estimate.net_gain > 0.0).then_some(first + from);
                self.estimate = Some(estimate);
            }
            None => self.candidates.clear(),
        }
    }

    fn is_taken(&self, candidate: Candidate) -> bool {
        self.from.is_some_and(|from| candidate.message >= from)
    }

    /// Number of tokens that the previews save.
    pub(super) fn saved(&self) -> u64 {
        let taken = self
            .candidates
            .iter()
            .filter(|candidate| self.is_taken(**candidate));
        taken
            .map(|candidate| candidate.gain)
            .fold(0, u64::saturating_add)
    }

    pub(super) fn estimate(&self) -> Option<CostEstimate> {
        self.estimate
    }

    /// Gains computed for the first time.
    pub(super) fn into_gains(self) -> Vec<(Fingerprint, u64)> {
        self.gains
    }

    /// Proposes the previews that pay, and keeps the other candidates as not paying.
    pub(super) fn put(&self, planner: &mut Planner<'_>) {
        let items = Rc::clone(&planner.items);
        let mut candidates = self.candidates.iter().peekable();
        for (at, (slot, item)) in items.outline.slots.iter().zip(&items.results).enumerate() {
            planner.stubs.begin(slot.head.id);
            let Some(candidate) = candidates.next_if(|candidate| candidate.at == at) else {
                continue;
            };
            if let (true, [PartRef::Text(text)]) = (self.is_taken(*candidate), &slot.parts[..]) {
                let (of, wrong_id) = planner.source(slot, item.tool);
                let line = planner.stubs.preview(&of, text);
                let edit = Edit::new(item, Outcome::Previewed, Content::Lines(vec![line]));
                planner.propose(edit, wrong_id);
            } else {
                planner.edits.push(Edit::kept(item, Reason::DoesNotPay));
            }
        }
    }
}

impl<'a> Planner<'a> {
    /// The text of a result that may become a preview, and the key of its gain. The result must be
    /// old enough to be cleared, must be storable, and must be a single whole text. If a triggered
    /// pass would show more of it than a preview, it is left to that pass.
    fn whole_text(&self, rule: CostAware, at: usize) -> Option<(&'a str, Fingerprint)> {
        let (slot, item) = (&self.items.outline.slots[at], &self.items.results[at]);
        let [PartRef::Text(text)] = slot.parts[..] else {
            return None;
        };
        let policy = self.session.policy(item.tool);
        let length = text.len() as u64;
        let may = text.len() > rule.above
            && policy.stub_length.bytes_for(length) <= policy.preview_length.bytes_for(length)
            && self.reason_of_age(slot).is_none()
            && policy.clears()
            && policy.backend().is_some()
            && policy.hooks.clear_handler.is_none()
            && !Self::is_short_error(slot, policy, item)
            && !slot.head.is_fixed
            && !self.taken.contains(&item.place);
        may.then(|| (text, item.settles_as(self.session.meter())))
    }

    /// Tokens that a preview gains wherever it is stored; 0 if it gains none, or if the text may be
    /// a hint of ours.
    fn gain_of_preview(&self, stubs: &mut Stubs<'a>, at: usize, text: &str) -> u64 {
        let (slot, item) = (&self.items.outline.slots[at], &self.items.results[at]);
        let policy = self.session.policy(item.tool);
        if self.session.apparent_hints(policy, text).is_some() {
            return 0;
        }
        let (of, _) = self.source(slot, item.tool);
        let line = [stubs.preview(&of, text)];
        let texts = Case::BOTH.map(|case| join(Line::all(&line, case)));
        let is_shorter = texts.iter().all(|shown| shown.len() < text.len());
        let meter = self.session.meter();
        let after = is_shorter.then(|| texts.iter().map(|text| meter.count_uncached(text)).max());
        after
            .flatten()
            .map_or(0, |after| item.tokens.saturating_sub(after))
    }
}
