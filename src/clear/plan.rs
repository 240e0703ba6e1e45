//! Which results go: a pure decision about a borrowed conversation.

use std::sync::{Arc, Mutex};

use super::decisions::{call_decision, call_of, result_decision};
use super::known::{All, Known};
use super::ledger::{Ledger, lock};
use super::lines::Source;
use super::pays::Previews;
use super::planner::Planner;
use super::survey::{Found, Survey};
use super::{Action, Choice, Edit, Line, Place, Plan, Request, cleared_arguments, is_cleared};
use crate::config::Policy;
use crate::fingerprint::Fingerprint;
use crate::format::{Conversation, PartRef};
use crate::ours::SEVERAL;
use crate::report::{Certainty, Outcome, Reason, Report, TokenCount};
use crate::rounds::{Age, Slot};
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

impl<'a> Planner<'a> {
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
