//! The cost-aware pass: which whole results become previews, because that is expected to pay. A
//! pure decision.
//!
//! A rewrite begins somewhere and goes to the end: whatever is sent behind the first message that
//! changed is read anew, so every candidate from there on becomes a preview with it. What a second
//! pass over the same conversation still finds is in front of that, and was found not to be worth
//! it; so it changes nothing (L4).

use super::decisions::{call_of, result_decision};
use super::known::All;
use super::lines::{Liner, Source};
use super::planner::Planner;
use super::{Line, Place, Request};
use crate::config::CostAware;
use crate::fingerprint::Fingerprint;
use crate::format::{Conversation, PartRef};
use crate::report::{Outcome, Outlook, Reason};
use crate::rounds::last_turn;
use crate::session::Session;
use crate::store::Phase;

/// What the cost-aware pass found.
#[derive(Debug, Default)]
pub(super) struct Previews {
    /// The results that could become previews, in order.
    candidates: Vec<Candidate>,
    /// From which message on they do.
    from: Option<usize>,
    outlook: Option<Outlook>,
}

/// A whole result.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// Its index among the outline's slots.
    slot: usize,
    message: usize,
    /// The tokens that its preview gains; never 0.
    gain: u64,
}

impl Previews {
    fn is_taken(&self, candidate: Candidate) -> bool {
        self.from.is_some_and(|from| candidate.message >= from)
    }

    /// The tokens that they save.
    pub(super) fn saved(&self) -> u64 {
        let taken = self
            .candidates
            .iter()
            .filter(|candidate| self.is_taken(**candidate));
        taken
            .map(|candidate| candidate.gain)
            .fold(0, u64::saturating_add)
    }
}

impl<'a> Planner<'a> {
    /// Which whole results are to become previews. Nothing is done to them yet.
    pub(super) fn previews(
        &mut self,
        rule: CostAware,
        all: &All<'a>,
        conversation: &dyn Conversation,
        request: Request<'_>,
    ) -> Previews {
        let mut liner = Liner::new(self.session);
        let mut candidates = Vec::new();
        for (at, slot) in all.outline.slots.iter().enumerate() {
            liner.begin(slot.head.id);
            let Some((text, key)) = self.whole_text(rule, all, at) else {
                continue;
            };
            let gain = self.ledger.gain(key).unwrap_or_else(|| {
                let gain = self.gain_of_preview(&mut liner, all, at, text);
                self.gains.push((key, gain));
                gain
            });
            if gain > 0 {
                candidates.push(Candidate {
                    slot: at,
                    message: slot.message,
                    gain,
                });
            }
        }
        let (Some(first), Some((last_turn, turns))) = (candidates.first(), last_turn(conversation))
        else {
            return Previews::default();
        };
        let meter = self.session.meter();
        let first = first.message;
        let sent = |message| Sent {
            tokens: meter.message(conversation, message),
            gain: 0,
        };
        let mut sent: Vec<Sent> = (first..last_turn).map(sent).collect();
        // Where a loop hands in the originals, what stood in the last request is what is put there
        // again.
        for repeated in self
            .report
            .decisions
            .iter()
            .filter(|decision| decision.outcome == Outcome::Repeated)
        {
            let at = repeated
                .message
                .and_then(|message| message.checked_sub(first));
            if let (Some(sent), Some(change)) =
                (at.and_then(|at| sent.get_mut(at)), repeated.tokens)
            {
                sent.tokens = sent.tokens.saturating_sub(change.saved());
            }
        }
        for candidate in &candidates {
            // A result that was answered stands before the last turn.
            if let Some(sent) = sent.get_mut(candidate.message - first) {
                sent.gain = sent.gain.saturating_add(candidate.gain);
            }
        }
        let calls = rule.expected_calls.after(turns);
        let Some((from, outlook)) = best(&sent, rule, calls, request.cache_is_cold) else {
            return Previews::default();
        };
        let from = (outlook.pays > 0.0).then_some(first + from);
        Previews {
            candidates,
            from,
            outlook: Some(outlook),
        }
    }

    /// Puts the previews where they are to be, and says of the others that they don't pay.
    pub(super) fn put(&mut self, previews: &Previews, all: &All<'a>) {
        self.report.outlook = previews.outlook;
        let mut candidates = previews.candidates.iter().peekable();
        for (at, slot) in all.outline.slots.iter().enumerate() {
            self.liner.begin(slot.head.id);
            let Some(candidate) = candidates.next_if(|candidate| candidate.slot == at) else {
                continue;
            };
            let known = &all.results[at];
            let mut decision = result_decision(&all.outline, slot, known);
            if let (true, [PartRef::Text(text)]) = (previews.is_taken(*candidate), &slot.parts[..])
            {
                let (line, error) = preview(self.session, &mut self.liner, all, at, text);
                decision.error = error;
                let place = Place::Result {
                    message: slot.message,
                    slot: slot.slot,
                };
                self.propose(
                    decision,
                    Outcome::Previewed,
                    place,
                    known,
                    vec![line],
                    |text| text,
                );
            } else {
                decision.keep(Reason::DoesNotPay);
                self.report.decisions.push(decision);
            }
        }
    }

    /// The text of a result that may become a preview, and what its gain is known by: one that is
    /// old enough to be cleared, could be stored, and is one whole text. What a triggered pass
    /// would show more of is left to it.
    fn whole_text<'t>(
        &self,
        rule: CostAware,
        all: &'t All<'a>,
        at: usize,
    ) -> Option<(&'t str, Fingerprint)> {
        let (slot, known) = (&all.outline.slots[at], &all.results[at]);
        let [PartRef::Text(text)] = slot.parts[..] else {
            return None;
        };
        let tool = all.outline.tool(slot);
        let policy = self.session.policy(tool);
        let length = text.len() as u64;
        let may = text.len() > rule.above
            && policy.stub_length.of(length) <= policy.preview_length.of(length)
            && self.reason_of_age(&all.outline, slot).is_none()
            && policy.clears
            && policy.backend().is_some()
            && policy.hooks.clear_handler.is_none()
            && !Self::is_short_error(slot, policy, known)
            && !slot.head.is_fixed
            && !self.repeated.contains(&Place::Result {
                message: slot.message,
                slot: slot.slot,
            });
        may.then(|| (text, known.original.settles_as(self.session.meter(), tool)))
    }

    /// The tokens that a preview gains wherever it is stored; 0 if it gains none, or the text may
    /// be a hint of ours.
    fn gain_of_preview(&self, liner: &mut Liner<'a>, all: &All<'a>, at: usize, text: &str) -> u64 {
        if self
            .session
            .own_hints(
                self.session
                    .policy(all.outline.tool(&all.outline.slots[at])),
                text,
            )
            .is_some()
        {
            return 0;
        }
        let (line, _) = preview(self.session, liner, all, at, text);
        let (meter, before) = (self.session.meter(), all.results[at].tokens);
        let texts = [0, 1]
            .map(|choice| Line::render_all(std::slice::from_ref(&line), self.session, choice));
        let is_shorter = texts.iter().all(|shown| shown.len() < text.len());
        let after = if is_shorter {
            texts.iter().map(|text| meter.once(text)).max()
        } else {
            None
        };
        after.map_or(0, |after| before.saturating_sub(after))
    }
}

/// What the result at `at` becomes, and what a callback did wrong.
fn preview<'a>(
    session: &Session,
    liner: &mut Liner<'a>,
    all: &All<'a>,
    at: usize,
    text: &str,
) -> (Line, Option<String>) {
    let (outline, slot) = (&all.outline, &all.outline.slots[at]);
    let tool = outline.tool(slot);
    let policy = session.policy(tool);
    let (id, error) = session.id_of(Phase::Clear, slot.head.id, || call_of(outline, slot));
    let previewer = policy.previewer(tool, || call_of(outline, slot).arguments);
    (
        liner.preview(
            Source {
                id: &id,
                tool,
                policy,
                previewer: &previewer,
            },
            text,
        ),
        error,
    )
}

/// A message of the last request.
#[derive(Clone, Copy, Debug)]
struct Sent {
    tokens: u64,
    /// What of them previews gain.
    gain: u64,
}

/// Where a rewrite pays most, as an index into `sent`, the last messages of the last request;
/// `None` if nowhere enough is saved.
fn best(sent: &[Sent], rule: CostAware, calls: f64, is_cold: bool) -> Option<(usize, Outlook)> {
    let (fresh, cached) = (rule.prices.fresh, rule.prices.cached);
    let (mut saves, mut costs, mut best) = (0_u64, 0.0, None::<(usize, Outlook)>);
    for (from, message) in sent.iter().enumerate().rev() {
        saves = message.gain.saturating_add(saves);
        let would_cost = if is_cold { fresh } else { cached };
        costs += fresh * message.tokens.saturating_sub(message.gain) as f64
            - would_cost * message.tokens as f64;
        if message.gain == 0 || saves < rule.at_least_tokens {
            continue;
        }
        let pays = calls * cached * saves as f64 - costs;
        if best.is_none_or(|(_, best)| pays > best.pays) {
            best = Some((
                from,
                Outlook {
                    calls,
                    saves,
                    costs,
                    pays,
                },
            ));
        }
    }
    best
}
