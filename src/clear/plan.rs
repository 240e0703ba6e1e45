//! Which results go: a pure decision about a borrowed conversation.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::decisions::{call_decision, call_of, result_decision};
use super::known::{All, Known};
use super::ledger::{Ledger, lock};
use super::lines::{Liner, Source};
use super::pays::Previews;
use super::survey::{Found, Survey};
use super::{Action, Choice, Edit, Line, Place, Plan, Request, cleared_arguments, is_cleared};
use crate::config::Policy;
use crate::fingerprint::Fingerprint;
use crate::format::{Conversation, PartRef};
use crate::ours::SEVERAL;
use crate::report::{Certainty, Change, Decision, Outcome, Reason, Report, Sum, TokenCount};
use crate::rounds::{Age, Outline, Slot};
use crate::session::Session;
use crate::store::Phase;
use crate::tokens::Text;

impl Plan {
    /// Decides, and counts on this thread what is new.
    pub(crate) fn new(
        session: &Session,
        ledger: &Arc<Mutex<Ledger>>,
        conversation: &dyn Conversation,
        request: Request<'_>,
    ) -> Self {
        let found = session
            .clears()
            .then(|| survey(session, ledger, conversation, request).count(session.meter()));
        Self::of(session, ledger, conversation, request, found, 0)
    }

    /// The same, but what takes long to count is counted where that stops nobody. `freed` are the
    /// tokens that the pass has freed already.
    pub(crate) async fn counted_elsewhere(
        session: &Session,
        ledger: &Arc<Mutex<Ledger>>,
        conversation: &dyn Conversation,
        request: Request<'_>,
        freed: u64,
    ) -> Self {
        let found = match session
            .clears()
            .then(|| survey(session, ledger, conversation, request))
        {
            Some(survey) => Some(survey.count_elsewhere(session.meter()).await),
            None => None,
        };
        Self::of(session, ledger, conversation, request, found, freed)
    }

    fn of(
        session: &Session,
        ledger: &Arc<Mutex<Ledger>>,
        conversation: &dyn Conversation,
        request: Request<'_>,
        found: Option<Found>,
        freed: u64,
    ) -> Self {
        let mut plan = Self {
            session: session.clone(),
            ledger: Arc::clone(ledger),
            edits: Vec::new(),
            choice: Choice::all(),
            anchor: None,
            report: Report::default(),
        };
        let Some(Found {
            tokens,
            certainty,
            anchor,
            has_replaced,
            seen,
        }) = found
        else {
            return plan;
        };
        let mut ledger = lock(ledger);
        let mut planner = Planner::new(session, &ledger);
        // The rounds are read only where something is replaced again, costs are looked at, or the
        // pass is triggered.
        let cost_aware = session.settings().cost_aware;
        let mut all = (has_replaced || cost_aware.is_some())
            .then(|| All::of(conversation, session.meter(), &ledger, &seen));
        if let Some(all) = &all {
            planner.repeat(all);
        }
        let counted = match anchor {
            Some(anchor) => anchor
                .usage
                .saturating_add(tokens)
                .saturating_sub(ledger.saved_since(anchor)),
            None => tokens.saturating_sub(planner.report.cleared_input_tokens()),
        };
        let threshold = session.settings().max_tokens_for_clear;
        let (usage, drift) = (
            anchor.map(|anchor| anchor.usage),
            anchor.and_then(|anchor| ledger.drift(anchor)),
        );
        planner.report.tokens = Some(TokenCount {
            counted,
            certainty,
            threshold,
            usage,
            drift,
        });
        let previews = match (cost_aware, &all) {
            (Some(rule), Some(all)) => planner.previews(rule, all, conversation, request),
            _ => Previews::default(),
        };
        if counted.saturating_sub(previews.saved()) > threshold && certainty == Certainty::Counted {
            let all =
                all.get_or_insert_with(|| All::of(conversation, session.meter(), &ledger, &seen));
            plan.choice = Choice::new(session.settings(), counted, freed);
            planner.decide(all, plan.choice.clone());
        } else if let Some(all) = &all {
            planner.put(&previews, all);
        }
        planner.edits.extend(
            planner
                .candidates
                .into_iter()
                .map(|candidate| candidate.edit),
        );
        plan.anchor = anchor;
        plan.edits = planner.edits;
        plan.report = planner.report;
        let (settled, gains) = (planner.settled, planner.gains);
        ledger.settle(settled);
        ledger.record_gains(gains);
        drop(ledger);
        session.meter().end_pass(seen);
        plan
    }
}

fn survey<'c>(
    session: &Session,
    ledger: &Mutex<Ledger>,
    conversation: &'c dyn Conversation,
    request: Request<'c>,
) -> Survey<'c> {
    let settings = session.settings();
    // Who looks at costs has to know them, however little it is.
    let limit = settings
        .cost_aware
        .is_none()
        .then_some(settings.max_tokens_for_clear);
    Survey::of(session.meter(), &lock(ledger), conversation, request, limit)
}

pub(super) struct Planner<'a> {
    pub(super) session: &'a Session,
    pub(super) ledger: &'a Ledger,
    /// What is decided, by place in the conversation.
    pub(super) report: Report,
    pub(super) edits: Vec<Edit>,
    /// What is repeated, and not decided anew.
    pub(super) repeated: HashSet<Place>,
    pub(super) candidates: Vec<Candidate>,
    /// What will never be decided otherwise.
    settled: Vec<(Fingerprint, Reason)>,
    /// What previews gain that were never made before.
    pub(super) gains: Vec<(Fingerprint, u64)>,
    pub(super) liner: Liner<'a>,
}

/// What may go, with what that changes where its name is not taken.
pub(super) struct Candidate {
    pub(super) edit: Edit,
    pub(super) tokens: Sum,
}

impl Candidate {
    fn has_to_be_compared(&self) -> bool {
        let Action::Hints(_, lines) = &self.edit.action else {
            return false;
        };
        lines.iter().any(|line| matches!(line, Line::Shorten(_)))
    }
}

impl<'a> Planner<'a> {
    fn new(session: &'a Session, ledger: &'a Ledger) -> Self {
        Self {
            session,
            ledger,
            report: Report::default(),
            edits: Vec::new(),
            repeated: HashSet::new(),
            candidates: Vec::new(),
            settled: Vec::new(),
            gains: Vec::new(),
            liner: Liner::new(session),
        }
    }

    /// Decides about every result, oldest first, until the target is reached.
    fn decide(&mut self, all: &All<'a>, mut choice: Choice) {
        let settings = self.session.settings();
        for (at, slot) in all.outline.slots.iter().enumerate() {
            self.liner.begin(slot.head.id);
            self.decide_result(all, at);
            if settings.clear_tool_inputs {
                self.decide_arguments(all, slot);
            }
        }
        // What looks like a hint of ours is only known to be one once it has been compared. Until
        // then this is what is expected.
        let mut is_certain = true;
        for candidate in &self.candidates {
            is_certain &= !candidate.has_to_be_compared();
            if !choice.takes(candidate.tokens) {
                candidate.edit.keep(&mut self.report, Reason::TargetReached);
            }
        }
        if choice.is_too_little() {
            for candidate in &self.candidates {
                candidate.edit.keep(&mut self.report, Reason::TooLittle);
            }
            if is_certain {
                self.candidates.clear();
            }
        }
    }

    fn decide_result(&mut self, all: &All<'a>, at: usize) {
        let (outline, slot, known) = (&all.outline, &all.outline.slots[at], &all.results[at]);
        let place = Place::Result {
            message: slot.message,
            slot: slot.slot,
        };
        if self.repeated.contains(&place) {
            return;
        }
        let mut decision = result_decision(outline, slot, known);
        let policy = self.session.policy(&decision.tool);
        let key = known
            .original
            .settles_as(self.session.meter(), &decision.tool);
        let reason = self
            .reason_of_age(outline, slot)
            .or((!policy.clears).then_some(Reason::Excluded))
            .or(slot.head.is_fixed.then_some(Reason::Ambiguous))
            .or_else(|| self.ledger.settled(key))
            .or_else(|| self.reason_to_keep(slot, policy, known, key));
        if let Some(reason) = reason {
            decision.keep(reason);
            self.report.decisions.push(decision);
            return;
        }
        if let Some(handler) = policy.hooks.clear_handler.clone() {
            match self.decide_given(&*handler, all, at, &mut decision) {
                Ok(()) => return,
                Err(error) => decision.error = error.map(|error| error.to_string()),
            }
        }
        let (id, error) = self
            .session
            .id_of(Phase::Clear, slot.head.id, || call_of(outline, slot));
        decision.error = decision.error.or(error);
        let previewer = policy.previewer(&decision.tool, || call_of(outline, slot).arguments);
        let of = Source {
            id: &id,
            tool: &decision.tool,
            policy,
            previewer: &previewer,
        };
        let parts = slot.parts.iter().zip(1..);
        let lines: Vec<Line> = parts
            .map(|(part, number)| self.liner.part(of, *part, number))
            .collect();
        let shortens = lines
            .iter()
            .all(|line| matches!(line, Line::Shorten(_) | Line::Ready(..)));
        let outcome = match (policy.backend(), shortens) {
            (None, _) => Outcome::Lost,
            (Some(_), true) => Outcome::Shortened,
            (Some(_), false) => Outcome::Cleared,
        };
        self.propose(decision, outcome, place, known, lines, |text| text);
    }

    /// A call's arguments go when its result is old, whether or not the result itself is long
    /// enough to go.
    fn decide_arguments(&mut self, all: &All<'_>, slot: &Slot<'_>) {
        let (outline, Some(at)) = (&all.outline, slot.call) else {
            return;
        };
        let (call, known) = (&outline.calls[at], &all.calls[at]);
        let place = Place::Arguments {
            message: call.message,
            call: call.call,
        };
        let policy = self.session.policy(outline.tool(slot));
        let keep = self.session.settings().clear_retention_suffix_limit;
        if outline.age(slot, keep) != Age::Old || !policy.clears || self.repeated.contains(&place) {
            return;
        }
        let mut decision = call_decision(call, known);
        if let Some(reason) = self.ledger.settled(
            known
                .original
                .settles_as(self.session.meter(), &decision.tool),
        ) {
            decision.keep(reason);
            self.report.decisions.push(decision);
            return;
        }
        let text = Text::of_arguments(call.is.arguments).read();
        let reason = match () {
            () if text.len() <= self.session.settings().clear_tool_inputs_above => {
                Some(Reason::WithinLimit)
            }
            () if call.is.is_signed => Some(Reason::Signed),
            () if call.is.is_fixed => Some(Reason::Ambiguous),
            () if is_cleared(self.session, policy, &text) => Some(Reason::AlreadyHint),
            () => None,
        };
        if let Some(reason) = reason {
            decision.keep(reason);
            self.report.decisions.push(decision);
            return;
        }
        let (id, error) = self
            .session
            .id_of(Phase::Clear, slot.head.id, || call_of(outline, slot));
        decision.error = error;
        let previewer = policy.previewer(&decision.tool, || call_of(outline, slot).arguments);
        let of = Source {
            id: &id,
            tool: &decision.tool,
            policy,
            previewer: &previewer,
        };
        let line = self.liner.arguments(of, text.into_owned().into());
        let outcome = if policy.backend().is_some() {
            Outcome::Cleared
        } else {
            Outcome::Lost
        };
        self.propose(decision, outcome, place, known, vec![line], |hint| {
            cleared_arguments(&hint)
        });
    }

    /// Makes the edit a candidate if it is a gain wherever its content ends up.
    pub(super) fn propose(
        &mut self,
        mut decision: Decision,
        outcome: Outcome,
        place: Place,
        known: &Known,
        lines: Vec<Line>,
        wrap: fn(String) -> String,
    ) {
        let meter = self.session.meter();
        let texts = [0, 1].map(|choice| wrap(Line::render_all(&lines, self.session, choice)));
        let before = decision.tokens.map_or(0, |change| change.before);
        let bytes = texts.each_ref().map(|text| text.len() as u64);
        // Most of what gains nothing is short in bytes already, and its hints need not be counted.
        // Nor need the second one be where no text has more tokens than bytes and it can't be too
        // long.
        let is_shorter = bytes.each_ref().map(|bytes| *bytes < decision.bytes.before);
        let fits = || {
            meter.counts_at_most_bytes() && bytes[1] <= before || meter.text(&texts[1]) <= before
        };
        let after = is_shorter[0]
            .then(|| meter.text(&texts[0]))
            .filter(|after| *after <= before);
        // What has to be compared becomes the one or the other. All else becomes the one, under the
        // one name or the other.
        let is_compared = lines.iter().any(|line| matches!(line, Line::Shorten(_)));
        let is_gain = match after {
            Some(_) => is_compared || is_shorter[1] && fits(),
            None => is_compared && is_shorter[1] && fits(),
        };
        if !is_gain {
            if bytes[1] >= decision.bytes.before {
                // The second text does not depend on which names are taken, so that is how it
                // stays.
                self.settled.push((
                    known.original.settles_as(meter, &decision.tool),
                    Reason::NoGain,
                ));
            }
            decision.keep(Reason::NoGain);
            self.report.decisions.push(decision);
            return;
        }
        let index = self.report.decisions.len();
        let original = known.original.clone();
        let Some(after) = after else {
            // It stays if it is what it looks like. Only what is stored can tell.
            let mut expected = decision.clone();
            expected.keep(Reason::AlreadyHint);
            self.report.decisions.push(expected);
            decision.outcome = outcome;
            let edit = Edit {
                decision: index,
                place,
                original,
                action: Action::Hints(decision, lines),
            };
            self.candidates.push(Candidate {
                edit,
                tokens: Sum::default(),
            });
            return;
        };
        decision.outcome = outcome;
        decision.bytes.after = texts[0].len() as u64;
        let tokens = Change { before, after };
        decision.tokens = Some(tokens);
        self.report.decisions.push(decision.clone());
        let edit = Edit {
            decision: index,
            place,
            original,
            action: Action::Hints(decision, lines),
        };
        self.candidates.push(Candidate {
            edit,
            tokens: tokens.into(),
        });
    }

    pub(super) fn reason_of_age(&self, outline: &Outline<'_>, slot: &Slot<'_>) -> Option<Reason> {
        match outline.age(slot, self.session.settings().clear_retention_suffix_limit) {
            Age::Unanswered => Some(Reason::Unanswered),
            Age::Recent => Some(Reason::Recent),
            Age::Old => None,
        }
    }

    fn reason_to_keep(
        &mut self,
        slot: &Slot<'_>,
        policy: &Policy,
        known: &Known,
        key: Fingerprint,
    ) -> Option<Reason> {
        if self.is_final(slot, policy) {
            self.settled.push((key, Reason::AlreadyHint));
            return Some(Reason::AlreadyHint);
        }
        Self::is_short_error(slot, policy, known).then_some(Reason::ShortError)
    }

    /// Whether a result is hints that say no more than they have to. One is believed, and several
    /// where they are few.
    fn is_final(&self, slot: &Slot<'_>, policy: &Policy) -> bool {
        let (mut hints, mut bytes) = (0, 0);
        for part in &slot.parts {
            let PartRef::Text(text) = part else {
                return false;
            };
            let Some(own) = self.session.own_hints(policy, text) else {
                return false;
            };
            if !own.iter().all(|own| own.is_short(policy)) {
                return false;
            }
            hints += own.len();
            bytes += text.len();
        }
        hints == 1 || hints > 1 && bytes <= SEVERAL
    }

    pub(super) fn is_short_error(slot: &Slot<'_>, policy: &Policy, known: &Known) -> bool {
        slot.head.is_error
            && policy.keep_errors
            && known.bytes <= policy.preview_length.at_most() as u64
    }
}

impl Edit {
    /// It is not done.
    fn keep(&self, report: &mut Report, reason: Reason) {
        report.decisions[self.decision].keep(reason);
        if let Action::Given(_, given) = &self.action
            && let Some(arguments) = &given.arguments
        {
            report.decisions[arguments.index].keep(reason);
        }
    }
}
